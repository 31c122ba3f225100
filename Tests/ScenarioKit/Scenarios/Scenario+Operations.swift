import Foundation
import Glibc
import StallWatch
import Synchronization

extension Scenario {
    /// Operations that take longer than their limit, each for another reason.
    static let operationScenarios: [Scenario] = [
        .overdue(
            "operation-actors", "two actors wait for each other's answer, through continuations",
            in: "Account.settle(with:until:)", cause: "continuation", ends: .continuation,
            holder: "Account.settle(with:until:)"
        ) { hang in await Account().settle(with: Account(), until: hang) },
        .overdue(
            "operation-leaked", "a continuation is not resumed", in: "awaitTheReply(_:)", cause: "continuation",
            ends: .continuation, holder: "awaitTheReply(_:)"
        ) { hang in await awaitTheReply(hang) },
        .overdue(
            "operation-group", "one of three child tasks does not end", in: "closure #1 in awaitTheChildren(_:)",
            cause: "continuation", ends: .continuation, holder: "awaitTheReply(_:)"
        ) { hang in await awaitTheChildren(hang) },
        .overdue(
            "operation-stream", "a stream is not finished", in: "readTheEvents(_:)", cause: "continuation",
            ends: .continuation, holder: "readTheEvents(_:)"
        ) { hang in
            let (stream, source) = AsyncStream.makeStream(of: Int.self)
            source.yield(1)
            hang.whenReleased { source.finish() }
            await readTheEvents(stream)
        },
        .overdue(
            "operation-semaphore", "another task waits for a semaphore", in: "awaitTheTask(_:)", cause: "lock",
            ends: .running, holder: "waitForTheSemaphore(for:)"
        ) { hang in await awaitTheTask(Task.detached { waitForTheSemaphore(for: hang.duration) }) },
        .overdue(
            "operation-main-actor", "a call on the main thread sleeps, and the main actor waits",
            in: "useTheMainActor()", cause: "sleep", ends: .running, holder: "sleepTooLong(for:)", besides: "main"
        ) { hang in
            let callout = Task.detached { await MainLoop.timer { sleepTooLong(for: hang.duration) } }
            await pause(.milliseconds(20))
            await useTheMainActor()
            _ = await callout.value
        },
        .overdue(
            "operation-sleep", "a canceled task waits for a sleep that was not canceled", in: "awaitTheTask(_:)",
            cause: "sleep", ends: .sleep, holder: "sleepToTheEnd(for:)"
        ) { hang in
            let task = Task.detached { await sleepOnRegardless(for: hang.duration) }
            task.cancel()
            await awaitTheTask(task)
        },
        .overdue(
            "operation-background", "tasks that compute occupy all threads of the priority background",
            in: "awaitTheTask(_:)", cause: "cpu", ends: .pool, holder: "spinTheCPU(for:)"
        ) { hang in
            let end = SuspendingClock.now + hang.duration
            for _ in 0..<16 {
                Task.detached(priority: .background) { spinTheCPU(for: end - SuspendingClock.now) }
            }
            // An await would raise the priority of a task that it knows.
            await pause(.milliseconds(20))
            let relay = Task.detached(priority: .background) {}
            await awaitTheTask(relay)
        },
        .overdue(
            "operation-actor-blocked", "another task sleeps in a call on the actor", in: "useTheActor(_:)",
            cause: "sleep", ends: .running, holder: "sleepTooLong(for:)"
        ) { hang in
            let store = Store()
            let (begin, beginning) = AsyncStream.makeStream(of: Void.self)
            let task = Task.detached {
                await store.load(for: hang.duration) { beginning.finish() }
            }
            for await _ in begin {}
            await useTheActor(store)
            await task.value
        },
        .overdue(
            "operation-async-let", "a child task waits for a mutex", in: "awaitTheChild(_:)", cause: "lock",
            ends: .running, holder: "waitForTheLock(_:)"
        ) { hang in
            await awaitTheChild(PthreadLock().held(by: "lock-holder", .sleeping, for: hang.duration))
        },
        .stalling(
            "operation-circle", "two tasks wait for each other", times: 5,
            .operation(
                operationName, in: "awaitTheTask(_:)", cause: "deadlock", ends: .task, holder: "awaitTheTask(_:)")
        ) { context in
            // Nothing can end the operation: its monitor stops.
            let monitor = try await context.watch()
            let first = Mutex<Task<Void, Never>?>(nil)
            let second = Task.detached {
                while first.withLock({ $0 }) == nil { await pause(.milliseconds(5)) }
                if let task = first.withLock({ $0 }) { await awaitTheTask(task) }
            }
            let begin = SuspendingClock.now
            let task = Task.detached {
                await monitor.withLimit(context.threshold, operationName) { await awaitTheTask(second) }
            }
            first.withLock { $0 = task }
            await pause(context.stall)
            let duration = SuspendingClock.now - begin
            monitor.stop()
            return duration
        },
        .overdue(
            "operation-computes", "the operation computes", in: "spinTheCPU(for:)", cause: "cpu", ends: .running,
            holder: "spinTheCPU(for:)"
        ) { hang in spinTheCPU(for: hang.duration) },
    ]

    private static let operationName = "GET /feed"

    private static func overdue(
        _ name: String, _ summary: String, in function: String, cause: String, ends: StallReport.WaitKind,
        holder: String, besides: String? = nil, _ body: @escaping @Sendable (Hang) async -> Void
    ) -> Scenario {
        .stalling(
            name, summary, times: 5,
            .operation(operationName, in: function, cause: cause, ends: ends, holder: holder, besides: besides)
        ) { context in
            let hang = Hang(context.stall)
            let begin = SuspendingClock.now
            await context.monitor.withLimit(context.threshold, operationName) { await body(hang) }
            return SuspendingClock.now - begin
        }
    }
}

/// What ends a hang after a while, on a thread of its own: the pool may be occupied.
private final class Hang: Sendable {
    let duration: Duration
    private let end: SuspendingClock.Instant

    init(_ duration: Duration) {
        self.duration = duration
        end = SuspendingClock.now + duration
    }

    func whenReleased(_ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread { [self] in
            Thread.sleep(forTimeInterval: max((end - SuspendingClock.now).seconds, 0))
            body()
        }
    }
}

private actor Account {
    private var waiting: CheckedContinuation<Void, Never>?

    /// Waits until the other account has confirmed, which waits until this one has settled.
    func settle(with other: Account, until hang: Hang) async {
        await withCheckedContinuation { continuation in
            Task { await other.confirm(self) }
            // Breaks the deadlock, so that the scenario ends.
            hang.whenReleased { continuation.resume() }
        }
        waiting?.resume()
    }

    func confirm(_ other: Account) async { await other.waitUntilSettled() }

    private func waitUntilSettled() async { await withCheckedContinuation { waiting = $0 } }
}

private actor Store {
    private var count = 0

    func load(for duration: Duration, began: () -> Void) {
        began()
        sleepTooLong(for: duration)
        count += 1
    }

    @inline(never)
    func read() -> Int {
        errno = 0
        return count
    }
}

// What follows an await keeps the function on the stack in release builds: without it the await would be a tail call. The
// rules in Stalls.swift apply.

@inline(never)
private func awaitTheReply(_ hang: Hang) async {
    await withCheckedContinuation { continuation in hang.whenReleased { continuation.resume() } }
    errno = 0
}

@inline(never)
private func awaitTheTask(_ task: Task<Void, Never>) async {
    await task.value
    errno = 0
}

@inline(never)
private func awaitTheChildren(_ hang: Hang) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask {}
        group.addTask { await awaitTheReply(hang) }
        group.addTask { await pause(.milliseconds(10)) }
        await group.waitForAll()
    }
    errno = 0
}

@inline(never)
private func readTheEvents(_ stream: AsyncStream<Int>) async {
    for await _ in stream {}
    errno = 0
}

@inline(never)
@MainActor private func touchTheScreen() { errno = 0 }

@inline(never)
func useTheMainActor() async {
    await touchTheScreen()
    errno = 0
}

@inline(never)
private func useTheActor(_ store: Store) async {
    _ = await store.read()
    errno = 0
}

@inline(never)
private func sleepOnRegardless(for duration: Duration) async {
    // Another task, which is not canceled.
    await Task.detached { await sleepToTheEnd(for: duration) }.value
    errno = 0
}

@inline(never)
private func sleepToTheEnd(for duration: Duration) async {
    try? await Task.sleep(for: duration)
    errno = 0
}

@inline(never)
private func awaitTheChild(_ lock: PthreadLock) async {
    async let child: Void = waitForTheLock(lock)
    await child
    errno = 0
}
