import LinuxSupport
import StackCapture
import Synchronization

final class LoopMonitor: Sendable {
    let label: String
    let recorder: TurnRecorder
    let source: any LoopSource
    let stoppedEarly = Atomic<Int>(0)
    let timerDelays = TimerDelays()
    private let began = Atomic<UInt64>(0)
    private let probe = Mutex<OneShotTransfer<ThreadProbe>?>(nil)

    init(label: String, threshold: UInt64, recorder: TurnRecorder, source: any LoopSource) {
        self.label = label
        self.recorder = recorder
        self.source = source
        recorder.setThreshold(threshold)
    }

    /// The duration from which a turn is a stall, in nanoseconds.
    var threshold: UInt64 { recorder.threshold }

    /// When the watch began, in monotonic nanoseconds.
    var watchedFrom: UInt64 { began.load(ordering: .relaxed) }

    /// The number of turns that were stopped for a sample before the threshold, but did not become stalls.
    var earlyStops: Int { stoppedEarly.load(ordering: .relaxed) }

    /// Begins the watch, before the watchdog follows the loop: a stall that begins now must not be missed.
    ///
    /// The first heartbeat goes ahead of all work that the app sends next. The files of the loop's thread are opened, if it
    /// is known, because a process that gives up its user can only read open ones.
    func begin(at now: UInt64) {
        began.store(now, ordering: .relaxed)
        _ = (source as? HeartbeatSource)?.beat(recorder, threshold: threshold, at: now)
        guard let thread = source.knownThread ?? recorder.lastThread,
            let opened = try? ThreadProbe(thread: thread, files: [.all, .kept])
        else { return }
        let transfer = OneShotTransfer(opened)
        probe.withLock { $0 = transfer }
    }

    /// Takes the files that are open; `nil` if there are none.
    func takeFiles() -> ThreadProbe? { probe.withLock { $0.take() }?.take() }

    func setThreshold(_ threshold: UInt64) {
        recorder.setThreshold(threshold)
        (source as? HeartbeatSource)?.checkSoon()
        recorder.callWatchdog()
    }

    /// Sends a heartbeat if one is due, and reads the loop's state at `now` and what has ended since the last poll.
    func poll(at now: UInt64, mayBeat: Bool = true) -> LoopPoll {
        let heartbeats = source as? HeartbeatSource
        let nextHeartbeat = !mayBeat ? nil : heartbeats?.beat(recorder, threshold: threshold, at: now)
        var turn = recorder.snapshot()
        turn.isWaitingUnobserved = turn.began != nil && !turn.isGap && source.isWaitingUnobserved()
        return LoopPoll(
            turn: turn, target: target, load: recorder.load(at: now), recorder: recorder, stallEnd: recorder.stallEnd,
            nextHeartbeat: nextHeartbeat, isStarting: turn.number == 0 && heartbeats?.isKnownToRun != true
        )
    }

    var target: CaptureTarget { source.target(of: recorder) }

    /// Returns the duration of the current turn, in nanoseconds, for any thread; `nil` while the loop waits.
    func turnDuration(at now: UInt64) -> UInt64? {
        let turn = recorder.snapshot()
        guard let began = turn.began, !turn.isGap, !source.isWaitingUnobserved() else { return nil }
        return now &- min(began, now)
    }
}

struct LoopPoll {
    var turn: TurnSnapshot
    var target: CaptureTarget
    var load: LoopLoad
    let recorder: TurnRecorder
    /// When the marked stall ended, in monotonic nanoseconds; `nil` if none is marked or it lasts.
    var stallEnd: UInt64?
    /// When the next heartbeat is due, in monotonic nanoseconds; `nil` for a loop that reports its own turns.
    var nextHeartbeat: UInt64?
    var isStarting: Bool

    /// When the turn that was in progress at the poll has ended by now, in monotonic nanoseconds; `nil` while it lasts.
    var turnEnd: UInt64? { turn.began.flatMap(recorder.stalledTurnEnd) }
}

/// How late the timers of a loop were at the looks at it.
///
/// Only the watchdog writes; any thread may read.
final class TimerDelays: Sendable {
    private let number = Atomic<Int>(0)
    private let longestDelay = Atomic<UInt64>(0)
    /// When the newest of the timers that are counted was due, in monotonic nanoseconds.
    private let newest = Atomic<UInt64>(0)

    /// The shortest delay that counts, in nanoseconds.
    static let shortest: UInt64 = 1_000_000
    /// How far the same date may be from itself at two looks, in nanoseconds: it is one of the wall clock.
    static let dateError: UInt64 = 20_000_000

    /// The number of timers that were late, once for each date; two looks may take close dates for one.
    var count: Int { number.load(ordering: .relaxed) }

    /// The longest delay, in nanoseconds; 0 without one.
    var longest: UInt64 { longestDelay.load(ordering: .relaxed) }

    /// Counts the timers that are late at a moment, in monotonic nanoseconds, but not those of earlier looks.
    func add(_ timers: [DueTimer], at now: UInt64) {
        let late = timers.map(\.due).filter { now &- min($0, now) >= Self.shortest }
        guard let first = late.min(), let last = late.max() else { return }
        let before = newest.load(ordering: .relaxed)
        number.wrappingAdd(late.count { $0 > before &+ Self.dateError }, ordering: .relaxed)
        newest.store(max(before, last), ordering: .relaxed)
        longestDelay.store(max(longest, now &- first), ordering: .relaxed)
    }
}
