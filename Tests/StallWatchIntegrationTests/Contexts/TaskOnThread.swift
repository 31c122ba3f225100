import Synchronization

/// Runs a task on the calling thread.
final class TaskOnThread: TaskExecutor {
    private let job = Mutex<UnownedJob?>(nil)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.job.withLock { $0 = job }
    }

    /// Runs `body` in a new task and returns the task's id, as its job describes it.
    @discardableResult
    static func run(name: String? = nil, _ body: @escaping @Sendable () -> Void) -> UInt64? {
        let executor = TaskOnThread()
        Task(name: name, executorPreference: executor) { body() }
        guard let job = executor.job.withLock({ $0.take() }) else { return nil }
        job.runSynchronously(on: executor.asUnownedTaskExecutor())
        return UInt64(job.description.filter(\.isNumber))
    }
}
