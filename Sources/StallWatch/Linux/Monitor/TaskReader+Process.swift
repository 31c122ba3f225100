import LinuxSupport
import StackCapture

extension TaskReader {
    /// Why tasks cannot be read: a sentence without its period.
    struct Unreadable: Error {
        let reason: String
    }

    /// Returns the reader of this process; throws if the calibration does not allow one.
    static func ofThisProcess(queue: Int64? = nil) throws(Unreadable) -> TaskReader {
        let (tasks, contexts) = (TaskCalibration.ofThisProcess, StallContext.calibration)
        if let problem = tasks.problem { throw Unreadable(reason: problem) }
        guard contexts.layout.task != nil, contexts.layout.robustList != nil else {
            throw Unreadable(reason: contexts.problem ?? "the threads' tasks cannot be read")
        }
        return TaskReader(tasks, contexts.layout, queue: queue)
    }
}

extension PoolTasks {
    /// Where threads keep their queues; by then, tasks can be read or not.
    private static let queue = Prepared { () -> Int64? in
        _ = try? TaskReader.ofThisProcess()
        return QueueCalibration.ofThisProcess.queue
    }

    /// What reads this process's tasks; begins to prepare it, and never waits.
    static func ofThisProcess() -> PoolTasks {
        queue.begin()
        guard let place = queue.value else { return .inPreparation }
        return (try? TaskReader.ofThisProcess(queue: place)).map(PoolTasks.reader) ?? .unreadable
    }

    /// What reads this process's tasks, if it is prepared and they can be read.
    static var readerOfThisProcess: TaskReader? {
        if case .reader(let reader) = ofThisProcess() { reader } else { nil }
    }

    /// Why no pinned thread of the task pool can be found: a sentence without its period; `nil` if they can.
    ///
    /// Waits for the calibrations, some milliseconds.
    static var problem: String? {
        do throws(TaskReader.Unreadable) { _ = try TaskReader.ofThisProcess() } catch { return error.reason }
        if QueueCalibration.ofThisProcess.queue == nil { return "libdispatch does not have the expected layout" }
        return pool.isReplaced
            ? "tasks run on a global executor of the program's own or on one thread, not on Swift's task pool" : nil
    }

    private static let pool = TaskPoolIdleCheck()
    /// The longest wait for a task, in nanoseconds: the pool may be full, or the caller its only thread.
    private static let patience: UInt64 = 50_000_000

    /// Lets an empty task find whether the program's tasks run on Swift's own pool; if it is late, the next check knows.
    ///
    /// Not where /proc is another namespace's, or is not mounted: there libdispatch ends a program with work in a pool, as
    /// it opens the `stat` of its workers (workqueue.c, `_dispatch_workq_count_runnable_workers`).
    static func findPool() {
        guard showsOwnThreads, pool.queue == nil, !pool.isReplaced else { return }
        let hasRun = Semaphore()
        Task.detached(name: HeartbeatSource.taskName) {
            pool.confirm()
            hasRun.post()
        }
        _ = hasRun.wait(until: monotonicNow() + patience)
    }
}
