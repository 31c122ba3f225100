import Synchronization

/// Runs a task on the calling thread, with a known name, and tells its id.
enum KnownTask {
    /// Holds the only job of the task until the calling thread runs it.
    private final class Executor: TaskExecutor {
        private let job = Mutex<UnownedJob?>(nil)

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            self.job.withLock { $0 = job }
        }

        func take() -> UnownedJob? { job.withLock { $0.take() } }
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
        guard let job = executor.take() else { return nil }
        // "UnownedJob(id: 12)".
        let digits = job.description.drop { !$0.isNumber }.prefix { $0.isNumber }
        job.runSynchronously(on: executor.asUnownedTaskExecutor())
        return UInt64(digits)
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
