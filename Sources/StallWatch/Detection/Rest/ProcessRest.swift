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
