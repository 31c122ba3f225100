import Dispatch
import Foundation
import StallWatch
import Synchronization

extension Scenario {
    /// Loops with a heartbeat: serial queues and pools.
    static let queueScenarios: [Scenario] = [
        .stalling(
            "queue", "a block on a serial queue sleeps", times: 3,
            .heartbeat("storage", .dispatchQueue, in: "sleepTooLong(for:)")
        ) { context in
            let queue = try await context.watchQueue()
            return await queue.time { sleepTooLong(for: context.stall) }
        },
        .stalling(
            "queue-lock", "a block on a serial queue waits for a mutex", times: 3,
            .heartbeat("storage", .dispatchQueue, in: "waitForTheLock(_:)")
        ) { context in
            let queue = try await context.watchQueue()
            let lock = PthreadLock().held(by: "lock-holder", .sleeping, for: context.stall)
            return await queue.time { waitForTheLock(lock) }
        },
        .stalling(
            "queue-backlog", "a serial queue gets 200 small blocks at once", times: 4,
            .init(loop: "storage", loopKind: .dispatchQueue, differingSamples: true)
        ) { context in
            let queue = try await context.watchQueue()
            return await queue.burst(200, for: context.stall)
        },
        .quiet("queue-idle", "a serial queue gets no work") { context in
            try await context.watch(.queue(DispatchQueue(label: "storage"), label: "storage"))
            await pause(context.threshold * 4)
        },
        .quiet("queue-busy", "a serial queue runs short blocks, one after another") { context in
            let queue = try await context.watchQueue()
            for _ in 0..<100 { _ = await queue.time { sleepTooLong(for: .milliseconds(10)) } }
        },
        filled("global-queue-full", "wait for a semaphore", in: "waitForTheSemaphore(for:)", waitForTheSemaphore),
        filled("global-queue-busy", "compute", in: "spinTheCPU(for:)", spinTheCPU),
        .quiet("global-queue-idle", "a global queue gets no work") { context in
            try await context.watch(.globalQueue(.background, label: "background"))
            await pause(context.threshold * 4)
        },
        blockedPool("cooperative-pool-blocked", "tasks that wait for a semaphore occupy all threads of the pool"),
        blockedPool(
            "cooperative-pool-high", "the same with tasks of the priority that the main thread's tasks have", .high),
        .stalling(
            "main-actor-queue", "a timer sleeps, and twenty tasks wait for the main actor", times: 3,
            .main(.timer, in: "sleepTooLong(for:)", cause: "sleep")
        ) { context in
            let callout = Task.detached { await MainLoop.timer { sleepTooLong(for: context.stall) } }
            await pause(.milliseconds(20))
            for _ in 0..<20 { Task.detached { await useTheMainActor() } }
            return await callout.value
        },
        .quiet("cooperative-pool-busy", "a thousand tasks compute and yield") { context in
            try await context.warmUp(.cooperativePool())
            // Ten at a time: an overloaded pool really is late.
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
        },
        .stalling(
            "executor-serial", "a job on a serial executor with its own thread sleeps", times: 3,
            .heartbeat("renderer", .serialExecutor, in: "sleepTooLong(for:)")
        ) { context in
            let executor = ThreadExecutor(threads: 1)
            try await context.warmUp(.executor(executor as any SerialExecutor, label: "renderer"))
            defer { executor.stop() }
            return await Task(executorPreference: executor) {
                DrivenLoop.time { sleepTooLong(for: context.stall) }
            }.value
        },
        .quiet("executor-idle", "a serial executor gets no work") { context in
            let executor = ThreadExecutor(threads: 1)
            try await context.watch(.executor(executor as any SerialExecutor, label: "renderer"))
            await pause(context.threshold * 4)
            executor.stop()
        },
        .stalling(
            "executor-pool-full", "jobs that sleep occupy both threads of a task executor", times: 3,
            .heartbeat("pool", .taskExecutor, in: "sleepTooLong(for:)", kind: .starvation)
        ) { context in
            let pool = PoolExecutor(threads: 2)
            try await context.warmUp(.executor(pool, label: "pool"))
            defer { pool.threads.stop() }
            let tasks = (0..<2).map { _ in
                Task(executorPreference: pool) { DrivenLoop.time { sleepTooLong(for: context.stall) } }
            }
            return await max(tasks[0].value, tasks[1].value)
        },
        .quiet("executor-pool-half", "a job that sleeps occupies one of its two threads") { context in
            let pool = PoolExecutor(threads: 2)
            try await context.warmUp(.executor(pool, label: "pool"))
            await Task(executorPreference: pool) { sleepTooLong(for: context.threshold * 3) }.value
            pool.threads.stop()
        },
    ]

    /// Tasks of that priority, by default a detached task's own, wait in all threads of the pool.
    private static func blockedPool(_ name: String, _ summary: String, _ priority: TaskPriority? = nil) -> Scenario {
        .stalling(
            name, summary, times: 3,
            .heartbeat("tasks", .cooperativePool, in: "waitForTheSemaphore(for:)", kind: .starvation)
        ) { context in
            try await context.warmUp(.cooperativePool())
            return await fillPool(
                for: context.stall, { item in Task.detached(priority: priority) { item() } }, waitForTheSemaphore)
        }
    }

    /// Blocks that do `work` occupy all workers of a global queue.
    private static func filled(
        _ name: String, _ summary: String, in function: String, _ work: @escaping @Sendable (Duration) -> Void
    ) -> Scenario {
        .stalling(
            name, "blocks that \(summary) occupy all workers of a global queue", times: 3,
            .heartbeat("utility", .globalQueue, in: function, kind: .starvation)
        ) { context in
            try await context.warmUp(.globalQueue(.utility, label: "utility"))
            let queue = DispatchQueue.global(qos: .utility)
            return await fillPool(for: context.stall, { queue.async(execute: $0) }, work)
        }
    }
}

extension ScenarioContext {
    /// Watches a loop, and waits for its first heartbeat, because only later ones count.
    func warmUp(_ loop: WatchedLoop) async throws {
        try await watch(loop)
        await pause(threshold)
    }

    /// Does the same with a new serial queue.
    fileprivate func watchQueue() async throws -> DispatchQueue {
        let queue = DispatchQueue(label: "storage")
        try await warmUp(.queue(queue, label: "storage"))
        return queue
    }
}

/// An executor with threads of its own; with one thread it is serial.
final class ThreadExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
    // `@unchecked Sendable`: the condition's lock protects both variables.
    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []
    private var isStopping = false

    init(threads: Int) {
        for _ in 0..<threads { Thread.detachNewThread { [self] in run() } }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        condition.withLock {
            jobs.append(job)
            condition.signal()
        }
    }

    func stop() {
        condition.withLock {
            isStopping = true
            condition.broadcast()
        }
    }

    private func run() {
        while let job = next() { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private func next() -> UnownedJob? {
        condition.withLock {
            while jobs.isEmpty, !isStopping { condition.wait() }
            return jobs.isEmpty ? nil : jobs.removeFirst()
        }
    }
}

final class PoolExecutor: TaskExecutor {
    let threads: ThreadExecutor

    init(threads: Int) { self.threads = ThreadExecutor(threads: threads) }

    func enqueue(_ job: consuming ExecutorJob) { threads.enqueue(job) }
}

/// Occupies all threads of a pool for `duration`, and returns how long the pool could start nothing else; `submit`
/// submits an item to the pool, and `work` occupies a thread for the given time.
func fillPool(
    for duration: Duration, _ submit: (@escaping @Sendable () -> Void) -> Void,
    _ work: @escaping @Sendable (Duration) -> Void
) async -> Duration {
    // More than the pool ever has threads: libdispatch adds one per second for blocked threads, 255 at most.
    let items = 300
    let begin = SuspendingClock.now
    let end = begin + duration
    await withCheckedContinuation { continuation in
        let left = Atomic(items)
        for _ in 0..<items {
            submit {
                let now = SuspendingClock.now
                if now < end { work(end - now) }
                if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { continuation.resume() }
            }
        }
    }
    return SuspendingClock.now - begin
}

#if NIO
    import NIOCore
    import NIOPosix

    extension Scenario {
        static let eventLoopScenarios: [Scenario] = [
            .stalling(
                "nio-loop-blocked", "a task on an event loop of SwiftNIO sleeps", times: 3,
                .heartbeat("nio", .eventLoop, in: "sleepTooLong(for:)")
            ) { context in
                try await withEventLoops { group in
                    try await context.watch(.eventLoops(of: group, label: "nio"))
                    await pause(context.threshold)
                    return try await group.next().submit { DrivenLoop.time { sleepTooLong(for: context.stall) } }.get()
                }
            },
            .quiet("nio-loop-busy", "the event loops run short tasks and then shut down") { context in
                try await withEventLoops { group in
                    try await context.watch(.eventLoops(of: group, label: "nio"))
                    for _ in 0..<60 { try await group.next().submit { sleepTooLong(for: .milliseconds(10)) }.get() }
                }
                // A loop that has shut down does not answer its heartbeat, and that is no stall.
                await pause(context.threshold * 2)
            },
            .stalling(
                "nio-pool-full", "items that sleep occupy both threads of a thread pool of SwiftNIO", times: 4,
                .heartbeat("files", .threadPool, in: "sleepTooLong(for:)", kind: .starvation)
            ) { context in
                try await withThreadPool(context) { pool in
                    async let first = pool.runIfActive { DrivenLoop.time { sleepTooLong(for: context.stall) } }
                    async let second = pool.runIfActive { DrivenLoop.time { sleepTooLong(for: context.stall) } }
                    return try await max(first, second)
                }
            },
            .quiet(
                "cured-nio-pool", "an item that sleeps occupies one of its two threads, and the pool shuts down then"
            ) { context in
                try await withThreadPool(context) { pool in
                    try await pool.runIfActive { sleepTooLong(for: context.threshold * 3) }
                }
                await pause(context.threshold * 2)
            },
        ]

        /// Runs `body` with a watched pool of two threads, of which each has run a heartbeat, and shuts the pool down.
        private static func withThreadPool<Result: Sendable>(
            _ context: ScenarioContext, _ body: (NIOThreadPool) async throws -> Result
        ) async throws -> Result {
            let pool = NIOThreadPool(numberOfThreads: 2)
            pool.start()
            try await context.watch(.threadPool(pool, label: "files"))
            await pause(context.threshold * 3)
            let result = try await body(pool)
            try await pool.shutdownGracefully()
            return result
        }

        /// Runs `body` with a group of two event loops and shuts the group down.
        private static func withEventLoops<Result: Sendable>(
            _ body: (any EventLoopGroup) async throws -> Result
        ) async throws -> Result {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
            let result = try await body(group)
            try await group.shutdownGracefully()
            return result
        }
    }
#else
    extension Scenario {
        /// Needs the package trait `NIO`.
        static let eventLoopScenarios: [Scenario] = []
    }
#endif
