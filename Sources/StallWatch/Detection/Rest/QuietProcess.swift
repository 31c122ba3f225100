import LinuxSupport

/// Decides whether no thread of the process can do anything before an event wakes the watchdog.
///
/// A pure value. A loop that has no work can get some, or can be occupied, by any thread of the process. So it may rest
/// only while each thread is known to do nothing, and known to wake the watchdog when it goes on:
/// - a run loop's thread that waits, whose observer notices the next turn;
/// - a worker of libdispatch in its idle wait, which is noticed when it begins a drain;
/// - libdispatch's manager, which runs none of the app's code;
/// - a thread that waits for an epoll set without an end, whose next event is noticed: SwiftNIO's loops;
/// - the monitors' own threads, and a main thread that has ended.
struct QuietProcess: Equatable {
    /// What is known of a thread.
    enum Activity: Equatable {
        /// The thread wakes the watchdog before it does anything.
        case isNoticed
        /// The next event of the epoll set wakes the watchdog, if it is polled for.
        case waitsForEvents(EpollWait)
        /// It may do anything.
        case unknown
    }

    /// The kernel ids of all threads, in ascending order.
    let threads: [Int32]
    /// The threads that wait for events.
    let waits: [Int32: EpollWait]

    /// Decides on all threads of the process.
    ///
    /// Fails at the first thread that may do anything.
    ///
    /// - Parameters:
    ///   - threads: The kernel ids of all threads, in ascending order.
    ///   - waiting: The threads of run loops that wait.
    ///   - workers: The workers of libdispatch.
    ///   - manager: The worker that waits for libdispatch's timers and descriptors.
    ///   - others: Returns what is known of any other thread, and of a worker in a drain.
    init?(
        threads: [Int32], waiting: Set<Int32>, workers: [DispatchWorkers.Worker], manager: Int32? = nil,
        others: (Int32) -> Activity
    ) {
        var waits: [Int32: EpollWait] = [:]
        let workers = Dictionary(workers.map { ($0.thread, $0) }) { first, _ in first }
        for thread in threads where !waiting.contains(thread) && thread != manager {
            if let worker = workers[thread] {
                if !worker.isInDrain { continue }
                // An item that waits for events itself takes a thread of the pool.
                guard !worker.isInPool else { return nil }
            }
            switch others(thread) {
            case .isNoticed where workers[thread] == nil: continue
            case .waitsForEvents(let wait): waits[thread] = wait
            case .isNoticed, .unknown: return nil
            }
        }
        self.threads = threads
        self.waits = waits
    }
}

extension QuietProcess {
    /// Reads the threads of this process.
    ///
    /// It reads a small file for most threads, some microseconds each.
    ///
    /// - Parameters:
    ///   - loops: The watched loops.
    ///   - manager: The worker that waits for libdispatch's timers and descriptors.
    init?(_ loops: [LoopMonitor], manager: Int32?) {
        guard DispatchWorkers.areFollowed else { return nil }
        self.init(
            threads: ThreadIdentity.all(), waiting: Set(loops.compactMap(\.recorder.waitingThread)),
            workers: DispatchWorkers.all, manager: manager, others: Self.activity)
    }

    /// What the names of the monitors' own threads begin with.
    private static let ownNames = "stallwatch-"

    private static func activity(of thread: Int32) -> Activity {
        if let wait = EpollWait(thread: thread) { return .waitsForEvents(wait) }
        guard let stat = readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcessStat.init) else {
            return .unknown
        }
        if stat.state == "Z" { return .isNoticed }
        return ThreadIdentity(thread).name?.hasPrefix(ownNames) == true ? .isNoticed : .unknown
    }
}
