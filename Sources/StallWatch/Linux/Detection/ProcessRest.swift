import LinuxSupport
import Synchronization

/// Lets the watchdog sleep without a deadline while loops without observers have no work.
///
/// Only the watchdog uses it. A rest has three steps: find out what each thread waits for, have the kernel notice the
/// events of the epoll sets among that, and see that nothing has changed meanwhile. Whatever happens after the third step
/// wakes the watchdog.
final class ProcessRest {
    /// Whether a drain of libdispatch's workers has to wake the watchdog.
    private final class DrainInterest: Sendable {
        let isWanted = Atomic<Bool>(false)
    }

    private let alarm: WatchdogAlarm
    private let mayPoll: () -> Bool
    private var polls: EventPolls?
    /// Whether polls are possible; `nil` before the first try.
    private var canPoll: Bool?
    private var drains: DrainNotice?
    private let interest = DrainInterest()
    private var manager: DispatchManager?
    private var attempts = RestAttempts()
    /// The threads that wait for events, whose epoll sets are polled.
    private var waits: [Int32: EpollWait] = [:]
    private var quiet: QuietProcess?

    /// - Parameters:
    ///   - alarm: The alarm that wakes the watchdog.
    ///   - mayPoll: Returns whether no seccomp filter ends the process for a poll. Called once, before the first.
    init(alarm: WatchdogAlarm, mayPoll: @escaping () -> Bool) {
        self.alarm = alarm
        self.mayPoll = mayPoll
    }

    /// Returns whether a rest may be tried at `now`.
    func isDue(at now: UInt64) -> Bool { now >= attempts.next }

    /// Returns whether no thread of the process can do anything before an event; `false` also if the last answers were no.
    func isQuiet(_ loops: [LoopMonitor], at now: UInt64) -> Bool {
        guard isDue(at: now) else { return false }
        let isQuiet = process(loops) != nil
        if !isQuiet { attempts.noteRefusal(at: now) }
        return isQuiet
    }

    /// Has every next event of the resting loops noticed.
    ///
    /// - Parameters:
    ///   - rests: The ways in which the loops rest.
    ///   - loops: All watched loops.
    /// - Returns: Whether it will be. Then ask ``isUnchanged(_:)``.
    func prepare(_ rests: [LoopRest], _ loops: [LoopMonitor]) -> Bool {
        waits = [:]
        quiet = nil
        // First, because they have a thread of their own.
        preparePolls()
        for case .events(let thread, let wait) in rests { waits[thread] = wait }
        if rests.contains(.dispatch) {
            if drains == nil {
                drains = DrainNotice { [alarm, interest] in
                    if interest.isWanted.load(ordering: .sequentiallyConsistent) { alarm.wakeIfParked() }
                }
            }
            // Before the workers are read: either that shows a drain, or the drain's notice sees this.
            interest.isWanted.store(true, ordering: .sequentiallyConsistent)
            guard drains != nil, let process = process(loops) else { return false }
            waits.merge(process.waits) { own, _ in own }
            quiet = process
        }
        return waits.values.allSatisfy { polls?.begin($0.descriptor) ?? false }
    }

    private func preparePolls() {
        guard canPoll == nil else { return }
        // Each call is tried in a child process under a seccomp filter, so this may take some milliseconds.
        if mayPoll() { polls = EventPolls { [alarm] in alarm.wakeIfParked() } }
        canPoll = polls != nil
    }

    private func process(_ loops: [LoopMonitor]) -> QuietProcess? {
        let manager = self.manager ?? DispatchManager()
        self.manager = manager
        return QuietProcess(loops, manager: manager.thread)
    }

    /// Returns whether everything is as it was before ``prepare(_:_:)``.
    ///
    /// If it is, every poll has begun while its thread was waiting.
    func isUnchanged(_ loops: [LoopMonitor]) -> Bool {
        if let quiet, process(loops) != quiet { return false }
        return waits.allSatisfy { EpollWait(thread: $0.key) == $0.value } && polls?.hasFired != true
    }

    /// Ends what ``prepare(_:_:)`` began.
    ///
    /// - Parameters:
    ///   - began: When the watchdog tried to rest, in monotonic nanoseconds.
    ///   - now: The time.
    ///   - hasRested: Whether it did.
    func end(from began: UInt64, at now: UInt64, hasRested: Bool) {
        polls?.endAll()
        interest.isWanted.store(false, ordering: .sequentiallyConsistent)
        if hasRested { attempts.noteRest(from: began, to: now) } else { attempts.noteRefusal(at: now) }
    }
}

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
        guard let stat = readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcStat.init) else {
            return .unknown
        }
        if stat.letter == "Z" { return .isNoticed }
        return ThreadIdentity(thread).name?.hasPrefix(ownNames) == true ? .isNoticed : .unknown
    }
}

/// Decides when the watchdog may try again to sleep without a deadline.
///
/// A pure value. An attempt that fails, or a rest that an event ends soon, costs more than a few looks at idle loops. So
/// attempts that do not pay become rare. Times are in nanoseconds.
struct RestAttempts {
    /// The least time between two attempts that do not pay.
    static let leastDelay: UInt64 = 250_000_000
    /// The longest time between two attempts.
    static let longestDelay: UInt64 = 16_000_000_000
    /// The shortest rest that pays.
    static let worthwhileRest: UInt64 = 2_000_000_000

    /// When an attempt may be made, in monotonic nanoseconds.
    private(set) var next: UInt64 = 0
    private var delay = RestAttempts.leastDelay

    /// Notes an attempt after which the watchdog did not rest.
    mutating func noteRefusal(at now: UInt64) {
        next = now &+ delay
        delay = min(delay * 2, Self.longestDelay)
    }

    /// Notes a rest.
    mutating func noteRest(from began: UInt64, to ended: UInt64) {
        if ended &- began >= Self.worthwhileRest {
            delay = Self.leastDelay
            next = ended
        } else {
            noteRefusal(at: ended)
        }
    }
}
