import Synchronization

/// Runs a task and its children on the calling thread.
final class TaskOnThread: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs `body` in a new task and returns the task's id, as its job describes it.
    @discardableResult
    static func run(name: String? = nil, _ body: @escaping @Sendable () async -> Void) -> UInt64? {
        let executor = TaskOnThread()
        Task(name: name, executorPreference: executor) { await body() }
        var id: UInt64?
        while let job = executor.jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            if id == nil { id = UInt64(job.description.filter(\.isNumber)) }
            job.runSynchronously(on: executor.asUnownedTaskExecutor())
        }
        return id
    }
}
