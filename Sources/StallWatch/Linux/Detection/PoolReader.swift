import LinuxSupport
import StackCapture
import StallReports

/// Reads which threads run tasks of the task pool, or of a watched task executor.
///
/// The pool is a dispatch queue for each priority (DispatchGlobalExecutor.cpp). A thread of it runs such a queue, maybe
/// around others. All reading is through the kernel: no thread is stopped, and no address can fault.
struct PoolReader {
    struct Sighting {
        var sighting: PinDetector.Sighting
        var label: String
        var kind: LoopKind
        /// The address of the task.
        var task: UInt64
        /// The class of the actor whose job the thread runs; `nil` if it is none's.
        var actor: String?
        /// The most tasks that run at the same time; `nil` for a task executor.
        var width: Int?
        /// The number of tasks that wait for a thread; `nil` if it is not known.
        var waitingTasks: Int?
    }

    let tasks: TaskReader
    private let memory = GuardedMemory()

    init(_ tasks: TaskReader) { self.tasks = tasks }

    func look(_ pools: WatchedPools) -> [Sighting] { tasks.threads().compactMap { sighting(of: $0, pools) } }

    /// Returns whether a thread still runs the task that a look found on it.
    func isRunning(_ sighting: Sighting) -> Bool {
        tasks.thread(sighting.sighting.thread)?.task == sighting.task
            && tasks.memory.stableTask(at: sighting.task)?.id == sighting.sighting.task
    }

    private func sighting(of thread: TaskThread, _ pools: WatchedPools) -> Sighting? {
        guard thread.task != 0, let task = tasks.memory.stableTask(at: thread.task), task.isRunning,
            task.name != Array(HeartbeatSource.taskName.utf8),
            let reading = ThreadProbe.readBriefly(thread.id, [.schedstat, .stat, .status])
        else { return nil }
        var found = Sighting(
            sighting: .init(thread: thread.id, task: task.id, pool: 0, reading: reading), label: "",
            kind: .cooperativePool, task: thread.task)
        if let preference = task.preference, let label = pools.executors[preference] {
            (found.label, found.kind, found.sighting.pool) = (label, .taskExecutor, preference)
        } else if task.preference == nil, let label = pools.label, let queue = queue(of: thread.id) {
            (found.label, found.sighting.pool, found.width) = (label, queue.address, queue.width)
            if let items = QueueItems.learned?.items(of: queue.address, memory) {
                let waiting = items.count - (pools.pendingQueues.contains(queue.address) ? 1 : 0)
                if items.count < QueueItems.maximumItems { found.waitingTasks = max(waiting, 0) }
                found.sighting.oldestItem = waiting > 0 ? items.first : 0
            }
        } else {
            return nil
        }
        let executor = tasks.memory.swiftClass(of: thread.executor)
        found.actor = executor?.isActor == true ? executor?.name : nil
        return isRunning(found) ? found : nil
    }

    /// The pool's queue that a thread runs, with its width; `nil` if it runs none.
    private func queue(of thread: Int32) -> (address: UInt64, width: Int)? {
        for queue in tasks.queues(ofThread: thread) {
            guard DispatchLayout.label(of: queue, memory) == TaskPoolIdleCheck.label,
                let width = DispatchLayout.width(of: queue, memory), 1..<DispatchLayout.poolWidth ~= width
            else { continue }
            return (queue, Int(width))
        }
        return nil
    }
}

/// What reads the tasks that threads run.
enum PoolTasks {
    /// It is not there yet: it takes some milliseconds, on another thread.
    case inPreparation
    case reader(TaskReader)
    /// This runtime's tasks cannot be read.
    case unreadable
}

/// The pools whose threads are looked at, with their labels.
struct WatchedPools {
    /// The label of the task pool; `nil` if it is not watched.
    var label: String?
    /// The labels of task executors, by their addresses.
    var executors: [UInt64: String] = [:]
    /// The queues in which an item of the monitor's own waits.
    var pendingQueues: [UInt64] = []

    /// Takes the pools among the loops; `withMain`: the main queue stands for the task pool.
    init(_ loops: [LoopMonitor], withMain: Bool = true) {
        for loop in loops {
            guard let source = loop.source as? HeartbeatSource else { continue }
            switch source.kind {
            case .cooperativePool: (label, pendingQueues) = (loop.label, source.pendingQueues)
            case .mainQueue where withMain: label = label ?? "tasks"
            case .taskExecutor: executors[source.executor] = loop.label
            default: break
            }
        }
    }

    var isEmpty: Bool { label == nil && executors.isEmpty }
}
