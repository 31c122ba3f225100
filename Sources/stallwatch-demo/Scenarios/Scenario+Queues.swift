import Dispatch
import StallWatch
import Foundation
import Synchronization

extension Scenario {
    /// Loops that are watched by heartbeat: serial queues and pools.
    static let queueScenarios: [Scenario] = [
        .stalling(
            "queue", "a block on a serial queue sleeps", times: 3,
            .heartbeat("storage", .dispatchQueue, in: "sleepTooLong(for:)")
        ) { context in
            let queue = DispatchQueue(label: "storage")
            try await context.watch(.queue(queue, label: "storage"))
            await warmUp(context)
            return await queue.time { sleepTooLong(for: context.stall) }
        },
        .stalling(
            "queue-lock", "a block on a serial queue waits for a mutex", times: 3,
            .heartbeat("storage", .dispatchQueue, in: "waitForTheLock(_:)")
        ) { context in
            let queue = DispatchQueue(label: "storage")
            try await context.watch(.queue(queue, label: "storage"))
            await warmUp(context)
            let lock = await HeldLock.held(for: context.stall)
            return await queue.time { waitForTheLock(lock) }
        },
        .stalling(
            "queue-backlog", "a serial queue is given 200 small blocks at once", times: 4,
            .init(loop: "storage", loopKind: .dispatchQueue, differingSamples: true)
        ) { context in
            let queue = DispatchQueue(label: "storage")
            try await context.watch(.queue(queue, label: "storage"))
            await warmUp(context)
            return await queue.backlog(200, for: context.stall)
        },
        .quiet("queue-idle", "nothing is given to a serial queue") { context in
            try await context.watch(.queue(DispatchQueue(label: "storage"), label: "storage"))
            await pause(context.threshold * 4)
            return nil
        },
        .quiet("queue-busy", "a serial queue has short blocks to run, one after another") { context in
            let queue = DispatchQueue(label: "storage")
            try await context.watch(.queue(queue, label: "storage"))
            for _ in 0..<100 { _ = await queue.time { sleepTooLong(for: .milliseconds(10)) } }
            return nil
        },
        .stalling(
            "global-queue-full", "blocks that wait for a semaphore keep all workers of a global queue", times: 3,
            .heartbeat("utility", .globalQueue, in: "waitForTheSemaphore(for:)", kind: .starvation)
        ) { context in
            try await context.watch(.globalQueue(.utility, label: "utility"))
            await warmUp(context)
            return await DispatchQueue.global(qos: .utility).fill(for: context.stall) { waitForTheSemaphore(for: $0) }
        },
        .stalling(
            "global-queue-busy", "blocks that compute keep all workers of a global queue", times: 3,
            .heartbeat("utility", .globalQueue, in: "spinTheCPU(for:)", kind: .starvation)
        ) { context in
            try await context.watch(.globalQueue(.utility, label: "utility"))
            await warmUp(context)
            return await DispatchQueue.global(qos: .utility).fill(for: context.stall) { spinTheCPU(for: $0) }
        },
        .quiet("global-queue-idle", "nothing is given to a global queue") { context in
            try await context.watch(.globalQueue(.background, label: "background"))
            await pause(context.threshold * 4)
            return nil
        },
        .stalling(
            "cooperative-pool-blocked", "tasks that wait for a semaphore keep all threads of the pool", times: 3,
            .heartbeat("tasks", .cooperativePool, in: "waitForTheSemaphore(for:)", kind: .starvation)
        ) { context in
            try await context.watch(.cooperativePool())
            await warmUp(context)
            return await FullPool.fill(for: context.stall, { item in Task.detached { item() } }) { left in
                waitForTheSemaphore(for: left)
            }
        },
        .quiet("cooperative-pool-busy", "a thousand tasks compute and let others go on") { context in
            try await context.watch(.cooperativePool())
            await warmUp(context)
            // Ten at a time: a pool that has more to do than it can is late in truth.
            for _ in 0..<100 {
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<10 {
                        group.addTask {
                            spinTheCPU(for: .microseconds(500))
                            await Task.yield()
                        }
                    }
                }
            }
            return nil
        },
    ]

    /// A heartbeat counts only from the first one that has run.
    private static func warmUp(_ context: ScenarioContext) async {
        await pause(context.threshold)
    }
}

extension DispatchQueue {
    /// Runs `work` on the queue, and returns how long it took.
    fileprivate func time(_ work: @escaping @Sendable () -> Void) async -> Duration {
        await withCheckedContinuation { continuation in
            async { continuation.resume(returning: DrivenLoop.time(work)) }
        }
    }

    /// Gives the queue `count` blocks at once, which together take `duration`: the first half computes, the rest sleeps.
    fileprivate func backlog(_ count: Int, for duration: Duration) async -> Duration {
        await withCheckedContinuation { continuation in
            let begin = SuspendingClock.now
            for index in 0..<count {
                async {
                    let each = duration / count
                    if index < count / 2 { spinTheCPU(for: each) } else { sleepTooLong(for: each) }
                    if index == count - 1 { continuation.resume(returning: SuspendingClock.now - begin) }
                }
            }
        }
    }

    /// Keeps all workers of a global queue for `duration`.
    fileprivate func fill(
        for duration: Duration, _ work: @escaping @Sendable (_ left: Duration) -> Void
    ) async -> Duration {
        await FullPool.fill(for: duration, { self.async(execute: $0) }, work)
    }
}

/// A pool all of whose threads are kept.
private enum FullPool {
    /// More items than there will be threads: libdispatch adds a thread a second for those that block, 255 at most.
    static let items = 300

    /// Keeps all threads of a pool for `duration`.
    ///
    /// `submit` gives the pool an item, and `work` keeps a thread for the time given. Returns how long the pool could start
    /// nothing else.
    static func fill(
        for duration: Duration, _ submit: (@escaping @Sendable () -> Void) -> Void,
        _ work: @escaping @Sendable (Duration) -> Void
    ) async -> Duration {
        let begin = SuspendingClock.now
        let end = begin + duration
        await withCheckedContinuation { continuation in
            let left = LeftToDo(items) { continuation.resume() }
            for _ in 0..<items {
                submit {
                    let now = SuspendingClock.now
                    if now < end { work(end - now) }
                    left.finishOne()
                }
            }
        }
        return SuspendingClock.now - begin
    }
}

/// Counts items down, and says when the last is done.
private final class LeftToDo: Sendable {
    private let count: Atomic<Int>
    private let whenDone: @Sendable () -> Void

    init(_ count: Int, whenDone: @escaping @Sendable () -> Void) {
        self.count = Atomic(count)
        self.whenDone = whenDone
    }

    func finishOne() {
        if count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { whenDone() }
    }
}
