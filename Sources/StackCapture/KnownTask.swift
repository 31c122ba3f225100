import Synchronization

/// Runs tasks on the calling thread, with known names, and tells their ids.
enum KnownTask {
    /// Holds the jobs of a task and its children until the calling thread runs them.
    private final class Executor: TaskExecutor {
        private let jobs = Mutex<[UnownedJob]>([])

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0.append(job) }
        }

        /// Runs all jobs, and those that they enqueue; returns the id of the first one's task.
        func run() -> UInt64? {
            var id: UInt64?
            while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                // "UnownedJob(id: 12)".
                let digits = job.description.drop { !$0.isNumber }.prefix { $0.isNumber }
                if id == nil { id = UInt64(digits) }
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
            return id
        }
    }

    /// Runs `body` in a new task, on the calling thread.
    ///
    /// - Parameters:
    ///   - name: The task's name.
    ///   - body: Gets the address of the task, 0 if it is not known.
    /// - Returns: The task's id; `nil` if the runtime does not tell it.
    static func run(name: String?, _ body: @escaping @Sendable (_ task: UInt64) -> Void) -> UInt64? {
        let executor = Executor()
        Task(name: name, executorPreference: executor) { body(address()) }
        return executor.run()
    }

    /// Runs `body` in a child of a new task, on the calling thread.
    ///
    /// - Parameters:
    ///   - bind: Calls an async function, in the parent.
    ///   - body: The code of the child.
    static func runWithChild(
        in bind: @escaping @Sendable (@Sendable () async -> Void) async -> Void, _ body: @escaping @Sendable () -> Void
    ) {
        let executor = Executor()
        Task(executorPreference: executor) {
            await bind {
                await withTaskGroup(of: Void.self) { $0.addTask { body() } }
            }
        }
        _ = executor.run()
    }

    /// Returns the address of the current task; 0 if there is none or it is not known.
    private static func address() -> UInt64 {
        withUnsafeCurrentTask { task in
            // The type has one field, the reference to the task (stdlib/public/Concurrency/Task.swift). If that
            // changes, the address is not found in the runtime's memory, and tasks are not read.
            guard let task, MemoryLayout<UnsafeCurrentTask>.size == MemoryLayout<UInt>.size else { return 0 }
            return UInt64(unsafeBitCast(task, to: UInt.self))
        }
    }
}
