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

    func look(_ pools: WatchedPools) -> [Sighting] {
        // One reading of a queue for all of its threads: it may take some 2 ms.
        var waiting: [UInt64: Waiting] = [:]
        let threads = tasks.threads().map { (thread: $0, queue: queue(of: $0.id)) }
        return threads.compactMap { thread, queue in
            let running = threads.count { $0.queue?.address == queue?.address }
            return sighting(of: thread, queue, running, pools, &waiting)
        }
    }

    /// Returns whether a heartbeat of one of these loops waits for threads of the task pool that compute, and no task
    /// does; `false` if it is not known.
    static func delaysNoTask(_ loop: LoopMonitor, among loops: [LoopMonitor], _ tasks: () -> PoolTasks) -> Bool {
        let own = WatchedPools([loop], withMain: false)
        let pools = WatchedPools(loops, withMain: false)
        guard !pools.isUnconfirmed, !own.pendingQueues.isEmpty, case .reader(let reader) = tasks()
        else { return false }
        return delaysNoTask(PoolReader(reader).look(pools), in: own.pendingQueues)
    }

    static func delaysNoTask(_ seen: [Sighting], in queues: [UInt64]) -> Bool {
        queues.allSatisfy { queue in
            let threads = seen.filter { $0.sighting.pool == queue }
            // A thread that computes may sleep for a moment, for a page or a lock.
            return threads.count == threads.first?.width && threads.allSatisfy { $0.waitingTasks == 0 }
                && threads.count { $0.sighting.reading.isRunnable } * 2 > threads.count
        }
    }

    /// The items that wait in a queue.
    private struct Waiting {
        /// `nil` if it is not known.
        var tasks: Int?
        /// What the oldest item is and has done, 0 for none; `nil` if it is not known.
        var oldest: Int?
        /// The group whose child tasks all of the first ones are; `nil` if they are not.
        var group: UInt64?
    }

    /// The number of items that are read to see whether all are of one group.
    private static let readItems = 64

    /// Returns the items that wait in a queue of which so many threads run one.
    ///
    /// While a queue's width lasts, an item has its place at once, and waits in the root queue for a thread: it is only counted.
    private func waiting(in queue: UInt64, running threads: Int, _ pools: WatchedPools) -> Waiting {
        guard !pools.isUnconfirmed, let layout = QueueItems.learned, let items = layout.items(of: queue, memory),
            let width = DispatchLayout.width(of: queue, memory),
            let state = memory.word(at: queue &+ DispatchLayout.stateOffset)
        else { return Waiting() }
        let own = pools.pendingQueues.count { $0 == queue }
        let unseen = DispatchLayout.places(state, width: width) - threads
        let count = Self.withoutThread(among: unseen, of: queue, layout, memory).map { max(items.count + $0 - own, 0) }
        // One in 2^64 items counts as none. The oldest one may be in the root queue.
        let oldest = items.count > own ? items.first.map { tasks.memory.traces(at: job(of: $0)) } : nil
        var waiting = Waiting(oldest: count == 0 ? 0 : oldest)
        if items.count < QueueItems.maximumItems { waiting.tasks = count }
        let groups = Set(items.prefix(Self.readItems).map { tasks.memory.stableTask(at: job(of: $0))?.group })
        if groups.count == 1, count != 0 { waiting.group = groups.first ?? nil }
        return waiting
    }

    /// Returns how many items wait in a queue's root queue, among so many with a place that no thread was seen to run;
    /// `nil` if that is not known.
    ///
    /// A thread that is between two short tasks, or changes them while it is read, has a place, too, and shows no task.
    static func withoutThread(
        among unseen: Int, of queue: UInt64, _ layout: QueueItems, _ memory: any MemoryReading
    ) -> Int? {
        guard unseen > 0 else { return 0 }
        guard let root = memory.word(at: queue &+ DispatchLayout.targetOffset), root != 0,
            let items = layout.items(of: root, memory)
        else { return nil }
        return min(unseen, items.count)
    }

    /// The words of an item of libdispatch, one of which is the task that the item runs.
    private static let wordsOfItem = 8

    /// Returns the task that an item of a queue runs; the item itself for another job.
    private func job(of item: UInt64) -> UInt64 {
        memory.words(at: item, count: Self.wordsOfItem)?.first { tasks.memory.isTask(at: $0) } ?? item
    }

    /// Returns whether a thread still runs the task that a look found on it.
    func isRunning(_ sighting: Sighting) -> Bool {
        tasks.thread(sighting.sighting.thread)?.task == sighting.task
            && tasks.memory.stableTask(at: sighting.task)?.id == sighting.sighting.task
    }

    private func sighting(
        of thread: TaskThread, _ queue: (address: UInt64, width: Int)?, _ running: Int, _ pools: WatchedPools,
        _ waiting: inout [UInt64: Waiting]
    ) -> Sighting? {
        guard thread.task != 0, let task = tasks.memory.stableTask(at: thread.task), task.isRunning,
            task.name != Array(HeartbeatSource.taskName.utf8),
            let reading = ThreadProbe.readBriefly(thread.id, [.schedstat, .stat, .status])
        else { return nil }
        var found = Sighting(
            sighting: .init(thread: thread.id, task: task.id, pool: 0, reading: reading), label: "",
            kind: .cooperativePool, task: thread.task)
        let runs = tasks.memory.swiftClass(of: thread.executor)
        // An actor with an executor of its own, as the main one, does not use the preferred one.
        let isOnPreferred = [0, task.preference].contains(thread.executor) || runs?.isActor == true
        if let preference = task.preference, isOnPreferred, let label = pools.executors[preference] {
            (found.label, found.kind, found.sighting.pool) = (label, .taskExecutor, preference)
        } else if task.preference == nil, let label = pools.label, let queue {
            (found.label, found.sighting.pool, found.width) = (label, queue.address, queue.width)
            let items = waiting[queue.address] ?? self.waiting(in: queue.address, running: running, pools)
            waiting[queue.address] = items
            found.waitingTasks = items.tasks
            // Children of one group wait for each other on purpose.
            found.sighting.oldestItem = items.group != nil && items.group == task.group ? 0 : items.oldest
        } else {
            return nil
        }
        found.actor = runs?.isActor == true ? runs?.name : nil
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
    /// The queue of each item of the monitor's own that waits.
    var pendingQueues: [UInt64] = []
    /// Whether an item of the monitor's own waits in a queue that is not known.
    var isUnconfirmed = false

    /// Takes the pools among the loops; `withMain`: the main queue stands for the task pool.
    init(_ loops: [LoopMonitor], withMain: Bool = true) {
        for loop in loops {
            guard let source = loop.source as? HeartbeatSource else { continue }
            switch source.kind {
            case .cooperativePool:
                let pending = source.pendingHeartbeats
                label = loop.label
                pendingQueues += pending.compactMap(\.self)
                isUnconfirmed = isUnconfirmed || pending.contains(nil)
            case .mainQueue where withMain: label = label ?? "tasks"
            case .taskExecutor: executors[source.executor] = loop.label
            default: break
            }
        }
    }

    init(_ context: WatchdogContext) {
        self.init(context.loops, withMain: context.options.watchesPoolWithMain)
    }

    /// Returns whether an item of the monitor's own waits, or may wait, in the queue whose thread was seen.
    func awaitsHeartbeat(in seen: PoolReader.Sighting) -> Bool {
        seen.kind == .cooperativePool && (isUnconfirmed || pendingQueues.contains(seen.sighting.pool))
    }

    var isEmpty: Bool { label == nil && executors.isEmpty }
}
