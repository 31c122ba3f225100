internal import CLinux
import Glibc
import LinuxSupport
import Synchronization

/// The atomics of one loop: the loop writes them, and the watchdog reads them.
///
/// Only the loop's own thread calls ``enter(at:)`` … ``exit(at:)``; any thread may take a ``snapshot()``. Nothing here
/// locks or allocates. The only system calls are gettid(2) for a new thread, and the semaphore post that wakes a parked
/// watchdog or reports the end of a turn over the threshold.
///
/// A turn lasts from the end of a wait until the loop waits again or exits. A loop that always has events never waits.
/// For such a loop, a turn ends where the next pass reaches its sources.
final class TurnRecorder: Sendable {
    /// When the current turn began, in monotonic nanoseconds, which identifies it; 0 between turns.
    private let began = Atomic<UInt64>(0)
    private let turn = Atomic<UInt64>(0)
    private let ended = Atomic<UInt64>(0)
    /// The number of runs of the loop on the thread's stack: 0 outside, 1 in the outermost run, more in nested runs.
    private let depth = Atomic<Int>(0)
    /// Whether this turn has already reached its sources; only the loop's thread uses it.
    private let reachedSources = Atomic<Bool>(false)
    /// The turn whose end the watchdog waits for; 0 for none.
    private let stalled = Atomic<UInt64>(0)
    /// When the marked turn ended; 0 while it lasts.
    private let stalledEnd = Atomic<UInt64>(0)
    /// The total time of the gaps between two runs that were longer than ``longestReentry``.
    private let gaps = Atomic<UInt64>(0)
    /// The longest of these gaps between two runs, and the number of runs after one, or first.
    private let longestGap = Atomic<UInt64>(0)
    private let runs = Atomic<UInt64>(0)
    /// The kernel id of the thread that runs the loop; 0 before the first turn.
    private let thread = Atomic<Int32>(0)
    /// The serial of that thread, which the loop compares without a system call.
    private let threadSerial = Atomic<UInt64>(0)
    /// The mode numbers of the loop's runs, one byte each, the innermost in the lowest one; 0 is a mode without a name.
    private let modes = Atomic<UInt64>(0)
    /// How often a run of the default mode began or went on after a nested run.
    private let defaultRuns = Atomic<UInt64>(0)
    /// The value of `defaultRuns` when a block of the main queue ran last.
    private let mainQueueRun = Atomic<UInt64>(.max)
    private let inGap = Atomic<Bool>(false)
    /// The duration from which a turn is a stall, in nanoseconds.
    private let currentThreshold = Atomic<UInt64>(.max)
    /// Whether the watchdog has to poll the loop whatever it expects of it.
    private let hasNews = Atomic<Bool>(false)

    static let defaultMode: UInt8 = 1

    /// The longest gap between two runs that does not count as a wait, in nanoseconds: `RunLoop.run()` leaves and
    /// enters its loop for every source, but what the thread does in a longer gap is unknown.
    static let longestReentry: UInt64 = 1_000_000

    let histogram = TurnHistogram()

    let history = TurnHistory()

    /// The turns over the threshold that ended before the watchdog marked them.
    let unseen = TurnHistory(capacity: TurnRecorder.maximumUnseen)

    /// The most such turns that are kept for the watchdog, which counts the others.
    static let maximumUnseen = 8

    let waits = WaitClock()

    private let alarm: WatchdogAlarm
    private let watchGaps: Bool

    /// Creates a recorder; with `watchGaps` the time between two runs of the loop counts as a turn.
    init(alarm: WatchdogAlarm, watchGaps: Bool = false) {
        self.alarm = alarm
        self.watchGaps = watchGaps
    }
}

// MARK: - On the loop's thread

extension TurnRecorder {
    func enter(at now: UInt64) {
        let runs = depth.load(ordering: .relaxed)
        depth.store(runs + 1, ordering: .relaxed)
        modes.store(modes.load(ordering: .relaxed) << 8, ordering: .relaxed)
        let last = ended.load(ordering: .relaxed)
        if runs == 0, now &- last > Self.longestReentry {
            gaps.store(gaps.load(ordering: .relaxed) &+ (now &- last), ordering: .relaxed)
            if last != 0 { longestGap.store(max(longestGap.load(ordering: .relaxed), now &- last), ordering: .relaxed) }
            self.runs.store(self.runs.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        }
        rememberThread()
        beginTurn(at: now)
    }

    /// Sets the mode of the run that has just begun, by its number: 1 to 255.
    func setMode(_ index: UInt8) {
        modes.store(modes.load(ordering: .relaxed) & ~0xff | UInt64(index), ordering: .relaxed)
        countDefaultRun()
    }

    private func countDefaultRun() {
        guard modes.load(ordering: .relaxed) & 0xff == UInt64(Self.defaultMode) else { return }
        defaultRuns.store(defaultRuns.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }

    /// Sets the mode of a run that began unobserved; one that the loop itself has set takes precedence.
    func adoptMode(_ index: UInt8) {
        let adopted = modes.compareExchange(expected: 0, desired: UInt64(index), ordering: .relaxed).exchanged
        if adopted { countDefaultRun() }
    }

    /// Marks that the loop is in a run, which may have begun before the loop was observed.
    private func markRun() {
        guard depth.load(ordering: .relaxed) == 0 else { return }
        depth.store(1, ordering: .relaxed)
        rememberThread()
    }

    func leaveWait(at now: UInt64) {
        markRun()
        waits.end(at: now)
        rememberThread()
        beginTurn(at: now)
    }

    /// Marks that the loop has reached its sources: twice without a wait in between begin a new turn.
    func reachSources(now: () -> UInt64) {
        markRun()
        guard reachedSources.load(ordering: .relaxed) else { return reachedSources.store(true, ordering: .relaxed) }
        beginTurn(at: now())
        reachedSources.store(true, ordering: .relaxed)
    }

    func markMainQueueRun() { mainQueueRun.store(defaultRuns.load(ordering: .relaxed), ordering: .relaxed) }

    func enterWait(at now: UInt64) {
        markRun()
        endTurn(at: now)
        waits.begin(at: now)
    }

    /// Ends a run; after a nested run, the callout that made it goes on as a new turn.
    func exit(at now: UInt64) {
        let outer = max(depth.load(ordering: .relaxed) - 1, 0)
        depth.store(outer, ordering: .relaxed)
        modes.store(modes.load(ordering: .relaxed) >> 8, ordering: .relaxed)
        countDefaultRun()
        if outer > 0 {
            beginTurn(at: now)
            reachedSources.store(true, ordering: .relaxed)
        } else if watchGaps {
            beginTurn(at: now)
            inGap.store(true, ordering: .relaxed)
        } else {
            endTurn(at: now)
        }
    }

    func beginTurn(at now: UInt64) {
        endTurn(at: now)
        reachedSources.store(false, ordering: .relaxed)
        inGap.store(false, ordering: .relaxed)
        turn.store(turn.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        began.store(now, ordering: .releasing)
        alarm.wakeIfParked()
    }

    func endTurn(at now: UInt64) {
        let current = began.load(ordering: .relaxed)
        guard current != 0 else { return }
        // In this order: after the `stalledEnd` of an earlier turn (see `stalledTurnEnd`), before `began` is cleared.
        let previousEnd = ended.load(ordering: .relaxed)
        ended.store(now, ordering: .releasing)
        histogram.record(now &- current)
        history.record(began: current, ended: now, previousEnd: previousEnd)
        began.store(0, ordering: .releasing)
        // Pairs with the fence in `markStalled`: this thread sees the mark, or the watchdog sees that the turn is over.
        alarm.fence.light()
        if stalled.load(ordering: .relaxed) == current {
            stalledEnd.store(now, ordering: .sequentiallyConsistent)
        } else {
            guard now &- current >= threshold else { return }
            unseen.record(began: current, ended: now, previousEnd: previousEnd)
        }
        callWatchdog()
    }

    /// Wakes the watchdog and makes it poll this loop, on any thread.
    func callWatchdog() {
        hasNews.store(true, ordering: .sequentiallyConsistent)
        alarm.ring()
    }

    /// Remembers the thread that runs the loop: one comparison, and a system call only if it has changed.
    func rememberThread() {
        let serial = clinux_thread_serial()
        guard threadSerial.load(ordering: .relaxed) != serial else { return }
        threadSerial.store(serial, ordering: .relaxed)
        thread.store(clinux_gettid(), ordering: .releasing)
    }

    /// Sets the kernel id of the thread that runs the loop, on another one.
    func setThread(_ id: Int32) { thread.store(id, ordering: .releasing) }
}

// MARK: - On the watchdog

extension TurnRecorder {
    func snapshot() -> TurnSnapshot {
        var snapshot = TurnSnapshot(began: nil, number: 0, nesting: 0)
        // `began` identifies the turn: if it is the same after the other loads, all values belong to that turn. A loop
        // whose turns keep changing during three loads is healthy: after 8 attempts the last values are good enough.
        for _ in 0..<8 {
            let began = began.load(ordering: .sequentiallyConsistent)
            snapshot = TurnSnapshot(
                began: began == 0 ? nil : began,
                number: turn.load(ordering: .acquiring),
                nesting: max(depth.load(ordering: .relaxed) - 1, 0),
                mode: UInt8(modes.load(ordering: .relaxed) & 0xff),
                isGap: inGap.load(ordering: .relaxed)
            )
            if self.began.load(ordering: .sequentiallyConsistent) == began { break }
        }
        return snapshot
    }

    /// Returns the turns of a millisecond or more that ended at or after `time`, oldest first, and the current turn.
    func turns(endedSince time: UInt64, now: UInt64) -> [TurnHistory.Turn] {
        let began = snapshot().began
        let last = ended.load(ordering: .acquiring)
        var turns = history.turns(endedSince: time)
        // A turn that has ended meanwhile is in the history.
        if let began, now &- min(began, now) >= TurnHistory.shortest, turns.last.map({ $0.began < began }) ?? true {
            turns.append(.init(began: began, waited: last == 0 || last > began ? 0 : began - last))
        }
        return turns
    }

    /// Whether the loop, which is the main thread's, has run, and serves the main queue as far as is known.
    ///
    /// A run inside another one does, unless a block of the queue makes it.
    var servesMainQueue: Bool {
        let turn = snapshot()
        let isNested = turn.nesting > 0 && turn.mode == Self.defaultMode
        return turn.number > 0
            && (!isNested || mainQueueRun.load(ordering: .relaxed) == defaultRuns.load(ordering: .relaxed))
    }

    /// The thread that ran the loop last; `nil` before the first turn.
    var lastThread: Int32? {
        let thread = thread.load(ordering: .acquiring)
        return thread == 0 ? nil : thread
    }

    /// Marks the turn that began at `began`: its end wakes the watchdog; returns the end if the loop will not see that.
    ///
    /// The result may be a later turn's end: too late by at most the time since the poll.
    @discardableResult
    func markStalled(_ began: UInt64) -> UInt64? {
        stalledEnd.store(0, ordering: .sequentiallyConsistent)
        stalled.store(began, ordering: .sequentiallyConsistent)
        alarm.fence.heavy()
        guard let end = stalledTurnEnd(began) else { return nil }
        let stored = stalledEnd.compareExchange(expected: 0, desired: end, ordering: .sequentiallyConsistent)
        callWatchdog()
        return stored.exchanged ? end : stored.original
    }

    /// When the turn that is marked as stalled ended, in monotonic nanoseconds; `nil` if none is, or while it lasts.
    var stallEnd: UInt64? {
        let marked = stalled.load(ordering: .relaxed)
        return marked == 0 ? nil : stalledTurnEnd(marked)
    }

    func stalledTurnEnd(_ began: UInt64) -> UInt64? {
        guard self.began.load(ordering: .sequentiallyConsistent) != began else { return nil }
        // The order of the loads matters: the loop stores the end of the marked turn before it ends another turn.
        let last = ended.load(ordering: .sequentiallyConsistent)
        let stored = stalledEnd.load(ordering: .sequentiallyConsistent)
        // If `stalledEnd` is 0, the turn ended before it was marked, or the loop has not stored its end yet.
        return stored != 0 ? stored : last
    }

    func load(at now: UInt64) -> LoopLoad {
        // Read twice: a wait or a gap that ends between two loads is missing in the first result only.
        let idle = max(idleTime(at: now), idleTime(at: now))
        let isOutside = depth.load(ordering: .relaxed) == 0
        return LoopLoad(
            time: now, turns: turn.load(ordering: .acquiring), idle: idle, busy: histogram.busyNanoseconds,
            isOutside: isOutside, lastEnd: ended.load(ordering: .relaxed),
            defaultRuns: defaultRuns.load(ordering: .relaxed), runs: runs.load(ordering: .relaxed),
            longestGap: longestGap.load(ordering: .relaxed))
    }

    private func idleTime(at now: UInt64) -> UInt64 {
        let past = waits.total(at: now) &+ gaps.load(ordering: .relaxed)
        let last = ended.load(ordering: .acquiring)
        guard depth.load(ordering: .relaxed) == 0, last < now, now - last > Self.longestReentry else { return past }
        return past &+ (now - last)
    }

    func clearStalled() {
        stalled.store(0, ordering: .sequentiallyConsistent)
    }

    var threshold: UInt64 { currentThreshold.load(ordering: .relaxed) }

    /// Sets the duration from which a turn is a stall, in nanoseconds, on any thread.
    func setThreshold(_ threshold: UInt64) { currentThreshold.store(threshold, ordering: .relaxed) }

    /// The begin of the current turn, or 0, and the number of turns: two loads, whose values may be of different turns.
    var mark: (began: UInt64, turns: UInt64) {
        (began.load(ordering: .sequentiallyConsistent), turn.load(ordering: .acquiring))
    }

    /// Returns whether the loop has called the watchdog since the last call.
    func takeNews() -> Bool {
        hasNews.load(ordering: .relaxed) && hasNews.exchange(false, ordering: .sequentiallyConsistent)
    }
}

struct TurnSnapshot: Equatable {
    /// When the current turn began, in monotonic nanoseconds; `nil` while the loop waits or does not run.
    var began: UInt64?
    /// The number of the current turn, or of the last one between turns, from 1 on.
    var number: UInt64
    /// The number of runs of the same loop around the current one; 0 in the outermost run.
    var nesting: Int
    /// The number of the innermost run's mode; 0 if the mode has no name.
    var mode: UInt8 = 0
    var isGap = false
    /// Whether the run loop waits although no observer saw the wait begin, as in a nested run in an unwatched mode.
    var isWaitingUnobserved = false
}

/// How a loop has spent its time until one moment, in nanoseconds.
struct LoopLoad: Equatable {
    var time: UInt64
    var turns: UInt64
    /// The time in waits and in gaps between two runs; a gap in which the loop only enters again does not count.
    var idle: UInt64
    /// The time in turns that are over.
    var busy: UInt64
    /// Whether the thread is in no run of the loop.
    var isOutside = false
    /// When the last turn ended; 0 before that.
    var lastEnd: UInt64 = 0
    var defaultRuns: UInt64 = 0
    /// The number of times that the loop was entered, not right after it was left, and the longest gap before one of them.
    var runs: UInt64 = 0
    var longestGap: UInt64 = 0
}

/// The total time that a loop has waited for its events, which tells an idle loop's late turn from the turns before.
///
/// Only the loop's thread calls ``begin(at:)`` and ``end(at:)``: two loads and stores each.
final class WaitClock: Sendable {
    private let past = Atomic<UInt64>(0)
    /// When the current wait began; 0 between waits.
    private let began = Atomic<UInt64>(0)

    func begin(at now: UInt64) {
        began.store(now, ordering: .releasing)
    }

    func end(at now: UInt64) {
        let began = began.load(ordering: .relaxed)
        guard began != 0 else { return }
        past.store(past.load(ordering: .relaxed) &+ (now &- began), ordering: .relaxed)
        self.began.store(0, ordering: .releasing)
    }

    /// Returns how long the loop had waited by `time`, in nanoseconds, or too little if a wait ends meanwhile.
    func total(at time: UInt64) -> UInt64 {
        // The order of the loads matters: reversed, a wait that ends between them would count twice.
        let past = past.load(ordering: .acquiring)
        let began = began.load(ordering: .acquiring)
        return past &+ (began != 0 && began < time ? time &- began : 0)
    }
}
