import CStalls
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

extension Scenario {
    /// A task keeps one thread of a pool: each way, and the same work done so that the pool gets its thread back.
    static let poolScenarios: [Scenario] = blockedPoolScenarios.flatMap { $0 } + otherPoolScenarios

    private static let blockedPoolScenarios: [[Scenario]] = [
        pinned(
            "sync", "waits for a queue", in: "waitForTheQueue(_:)", cause: "lock", lock: .dispatchQueue,
            owner: "queue-worker", with: { await DispatchQueue.busy(for: $0) }
        ) { queue, _ in waitForTheQueue(queue) },
        pinned(
            "semaphore", "waits for a semaphore", in: "waitForTheSemaphore(for:)", cause: "lock",
            lock: .dispatchSemaphore, with: { _ in }
        ) { waitForTheSemaphore(for: $1) },
        pinned(
            "condition", "waits for a condition", in: "waitForTheCondition(for:)", cause: "lock", lock: .condition,
            with: { _ in }
        ) { waitForTheCondition(for: $1) },
        pinned(
            "recv", "receives from a socket", in: "receiveFromTheSilentSocket(for:)", cause: "io", call: "recvfrom(",
            cured: "cured-pinnedBlocked", with: { _ in }
        ) { receiveFromTheSilentSocket(for: $1) },
        pinned(
            "lock", "waits for a mutex", in: "waitForTheLock(_:)", cause: "lock", lock: .pthreadMutex,
            owner: "lock-holder", with: { PthreadLock().held(by: "lock-holder", .sleeping, for: $0) }
        ) { lock, _ in waitForTheLock(lock) },
        pinned("process", "waits for a child process", in: "waitForTheProcess(for:)", with: { _ in }) {
            // It wakes every 50 ms: no single wait proves it.
            waitForTheProcess(for: $1 * 3 / 2)
        },
        pinned("sleep", "sleeps", in: "sleepInFoundation(for:)", cause: "sleep", with: { _ in }) {
            sleepInFoundation(for: $1)
        },
        pinned(
            "resolver", "asks a name server that does not answer", in: "lookUpAName(at:for:)", cause: "io",
            with: { _ in SilentServer() }, lookUpAName),
        pinned(
            "pipe", "reads an empty pipe", in: "readTheEmptyPipe(_:)", cause: "io",
            with: { BytePipe(emptyFor: $0) }
        ) { pipe, _ in readTheEmptyPipe(pipe) },
    ]

    private static let otherPoolScenarios: [Scenario] = [
        .stallingOften(
            "pool-computing", "tasks compute on all threads of the pool, and others wait", times: 5,
            ExpectedReport(
                // Other programs may have the CPUs for a part of the time: then that is the cause.
                kind: .pinned, loop: "tasks", loopKind: .cooperativePool, function: "spinTheCPU(for:)", count: threads)
        ) { context in
            // Not the pool itself, whose heartbeats would be late, too.
            try await context.watch(.mainQueue, pinnedThreshold: context.threshold)
            await pause(context.threshold * 2)
            return await computeOnAllThreads { spinTheCPU(for: context.stall) }
        },
        .quiet(
            "cured-pinnedComputing", "the same tasks give their threads back between pieces of the work"
        ) { context in
            try await context.watch(.mainQueue, pinnedThreshold: context.threshold)
            await pause(context.threshold * 2)
            let end = SuspendingClock.now + context.threshold * 5
            _ = await computeOnAllThreads {
                while SuspendingClock.now < end {
                    spinTheCPU(for: .milliseconds(10))
                    await Task.yield()
                }
            }
        },
        .quiet(
            "pool-batch", "tasks compute on all threads of the pool, and none waits", suppressed: .noTaskWaited
        ) { context in
            let monitor = try await context.watch(.mainQueue, pinnedThreshold: context.threshold)
            await pause(context.threshold * 2)
            let tasks = (0..<threads).map { _ in Task.detached { spinTheCPU(for: context.threshold * 5) } }
            for task in tasks { await task.value }
            _ = monitor
        },
        .quiet(
            "pool-batch-watched", "the same, and the pool is watched as a whole", suppressed: .noTaskWaited
        ) { context in
            // The heartbeat is late long before a thread counts as pinned.
            try await context.watch(.cooperativePool(), pinnedThreshold: context.threshold * 20)
            await pause(context.threshold * 2)
            let tasks = (0..<threads).map { _ in Task.detached { spinTheCPU(for: context.threshold * 5) } }
            for task in tasks { await task.value }
        },
        .stalling(
            "pool-executor", "a job that sleeps occupies one of the two threads of a task executor", times: 4,
            ExpectedReport(
                kind: .pinned, loop: "pool", loopKind: .taskExecutor, function: "sleepTooLong(for:)", cause: "sleep")
        ) { context in
            let pool = PoolExecutor(threads: 2)
            try await context.watch(.executor(pool, label: "pool"), pinnedThreshold: context.threshold)
            await pause(context.threshold * 2)
            defer { pool.threads.stop() }
            return await Task(executorPreference: pool) { DrivenLoop.time { sleepTooLong(for: context.stall) } }.value
        },
        .quiet("cured-pool-executor", "a job on a task executor sleeps without its thread") { context in
            let pool = PoolExecutor(threads: 2)
            try await context.watch(.executor(pool, label: "pool"), pinnedThreshold: context.threshold)
            await pause(context.threshold * 2)
            defer { pool.threads.stop() }
            await Task(executorPreference: pool) { await pause(context.threshold * 4) }.value
        },
        .stalling(
            "pool-fsync", "a job that flushes a file to a disk that hangs occupies a thread of a task executor",
            times: 4,
            ExpectedReport(
                kind: .pinned, loop: "pool", loopKind: .taskExecutor, function: "flushTheFile(_:for:)", cause: "io",
                call: "fsync(")
        ) { context in
            try await onAnExecutor(of: context) { file in DrivenLoop.time { flushTheFile(file, for: context.stall) } }
        },
        .quiet("cured-pool-fsync", "a thread of its own flushes the file, and the job awaits it") { context in
            try await onAnExecutor(of: context) { file in
                await withCheckedContinuation { continuation in
                    Thread.detachNewThread {
                        flushTheFile(file, for: context.threshold * 4)
                        continuation.resume()
                    }
                }
            }
        },
        .quiet("pool-short-tasks", "a thousand tasks a second begin and end") { context in
            try await context.watch(.mainQueue, pinnedThreshold: context.threshold)
            let end = SuspendingClock.now + context.threshold * 6
            while SuspendingClock.now < end {
                for _ in 0..<10 { Task.detached { spinTheCPU(for: .microseconds(50)) } }
                await pause(.milliseconds(10))
            }
        },
        .quiet("pool-waiting-tasks", "500 tasks await a continuation") { context in
            try await context.watch(.cooperativePool(), pinnedThreshold: context.threshold)
            let (stream, source) = AsyncStream.makeStream(of: Void.self)
            let waiting = (0..<500).map { _ in Task.detached { await pause(context.threshold * 4) } }
            let reader = Task.detached { for await _ in stream {} }
            for task in waiting { await task.value }
            source.finish()
            await reader.value
        },
    ]

    /// Runs `job` with a file on a watched task executor, whose threads end then, and with them their filters.
    private static func onAnExecutor<Result: Sendable>(
        of context: ScenarioContext, _ job: @escaping @Sendable (ScratchFile) async -> Result
    ) async throws -> Result {
        guard stalls_can_delay_fsync() else { throw NotAvailable(reason: "no call can be delayed here") }
        let file = try ScratchFile(megabytes: 1, in: context.directory)
        let pool = PoolExecutor(threads: 2)
        try await context.watch(.executor(pool, label: "pool"), pinnedThreshold: context.threshold)
        await pause(context.threshold * 2)
        defer {
            pool.threads.stop()
            file.close()
        }
        return await Task(executorPreference: pool) { await job(file) }.value
    }

    /// The number of tasks of one priority that run at the same time.
    private static let threads = max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1)

    /// A task that blocks on one thread of the pool, as the report has to say, and a twin that blocks on another thread.
    private static func pinned<Resource: Sendable>(
        _ name: String, _ summary: String, in function: String, cause: String? = nil,
        lock: StallReport.LockKind? = nil, owner: String? = nil, call: String? = nil, cured: String? = nil,
        with make: @escaping @Sendable (Duration) async throws -> Resource,
        _ work: @escaping @Sendable (Resource, Duration) -> Void
    ) -> [Scenario] {
        let expected = ExpectedReport(
            kind: .pinned, loop: "tasks", loopKind: .cooperativePool, function: function, cause: cause, owner: owner,
            lock: lock, call: call)
        return [
            .stalling("pool-\(name)", "a task \(summary)", times: 4, expected) { context in
                guard threads > 1 else { throw NotAvailable(reason: "one processor: then the pool is blocked whole") }
                try await context.watch(.cooperativePool(), pinnedThreshold: context.threshold)
                await pause(context.threshold * 2)
                let resource = try await make(context.stall)
                return await Task.detached(name: "pinning") {
                    DrivenLoop.time { work(resource, context.stall) }
                }.value
            },
            .quiet(cured ?? "cured-pool-\(name)", "a thread of its own \(summary), and a task awaits it") { context in
                try await context.watch(.cooperativePool(), pinnedThreshold: context.threshold)
                await pause(context.threshold * 2)
                let duration = context.threshold * 4
                let resource = try await make(duration)
                await withCheckedContinuation { continuation in
                    Thread.detachNewThread {
                        work(resource, duration)
                        continuation.resume()
                    }
                }
            },
        ]
    }

    /// Runs `work` in as many tasks as the pool has threads, with others behind them; returns how long each took.
    private static func computeOnAllThreads(_ work: @escaping @Sendable () async -> Void) async -> [Duration] {
        let tasks = (0..<threads).map { _ in
            Task.detached {
                let begin = SuspendingClock.now
                await work()
                return SuspendingClock.now - begin
            }
        }
        // They are behind the others in the pool's queue.
        let waiting = (0..<4).map { _ in Task.detached {} }
        var durations: [Duration] = []
        for task in tasks { durations.append(await task.value) }
        for task in waiting { await task.value }
        return durations
    }
}

// The rules in Stalls.swift apply.

@inline(never)
private func waitForTheProcess(for duration: Duration) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sleep")
    process.arguments = ["\(duration.seconds)"]
    if (try? process.run()) != nil { process.waitUntilExit() }
    errno = 0
}

@inline(never)
private func flushTheFile(_ file: ScratchFile, for duration: Duration) {
    guard stalls_delay_fsync(file.descriptor, UInt32(duration.milliseconds)) else { return }
    fsync(file.descriptor)
    errno = 0
}
