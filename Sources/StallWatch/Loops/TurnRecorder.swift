internal import CLinux
import Glibc
import LinuxSupport
import Synchronization

/// The small block of atomics that a monitored loop writes and the watchdog reads.
///
/// Only the loop's own thread calls ``enter(at:)`` … ``exit(at:)``; any thread may take a ``snapshot()``. Nothing here
/// locks or allocates. The only system call is the semaphore post that wakes a parked watchdog, or tells it that a
/// stalled turn is over.
///
/// A turn runs from the moment the loop leaves its wait until it waits again or exits. A loop that is always fed never
/// waits, so its passes are told apart where one pass's sources begin right after another's.
final class TurnRecorder: Sendable {
    /// When the current turn began; 0 between turns.
    ///
    /// Also the turn's identity: two turns never begin at the same time.
    private let began = Atomic<UInt64>(0)
    /// How many turns have begun.
    private let turn = Atomic<UInt64>(0)
    /// When the last turn ended.
    private let ended = Atomic<UInt64>(0)
    /// Runs of the loop on the thread's stack: 0 outside, 1 in the outermost, more in nested ones.
    private let depth = Atomic<Int>(0)
    /// Whether this turn has already reached its sources.
    ///
    /// Only the loop's thread uses it.
    private let reachedSources = Atomic<Bool>(false)
    /// The turn whose end the watchdog waits for; 0 for none.
    private let stalled = Atomic<UInt64>(0)
    /// When that turn ended; 0 while it lasts.
    private let stalledEnd = Atomic<UInt64>(0)
    /// When the loop last left a wait, or was entered from outside; 0 while it waits.
    private let leftWait = Atomic<UInt64>(0)
    /// The ``leftWait`` of the saturation whose end the watchdog waits for; 0 for none.
    private let saturated = Atomic<UInt64>(0)
    /// When that saturation ended; 0 while it lasts.
    private let saturatedEnd = Atomic<UInt64>(0)
    /// The kernel id of the thread that runs the loop; 0 while it has not been seen.
    private let thread = Atomic<Int32>(0)
    /// That thread's pthread_t, which it can compare without a system call.
    private let threadHandle = Atomic<UInt>(0)
    /// The modes of the loop's runs, innermost in the lowest byte; 0 is a mode that was not named.
    private let modes = Atomic<UInt64>(0)
    /// Whether the current turn is the time between two runs of the loop.
    private let inGap = Atomic<Bool>(false)

    /// `RunLoop.run()` leaves and enters its loop again for every source that it handles.
    ///
    /// A loop that comes back within this time, in nanoseconds, has not waited; what it does in a longer gap is not
    /// known, and counts as a wait.
    static let longestReentry: UInt64 = 1_000_000

    /// How long the turns took that are over.
    let histogram = TurnHistogram()

    /// How long the loop has waited.
    let waits = WaitClock()

    private let alarm: WatchdogAlarm
    private let watchGaps: Bool

    /// - Parameter watchGaps: Whether the time between two runs of the loop counts as a turn.
    init(alarm: WatchdogAlarm, watchGaps: Bool = false) {
        self.alarm = alarm
        self.watchGaps = watchGaps
    }
}

// MARK: - On the loop's thread

extension TurnRecorder {
    /// The loop is entered: by the app, or by a callout of an outer run of the same loop.
    func enter(at now: UInt64) {
        let runs = depth.load(ordering: .relaxed)
        depth.store(runs + 1, ordering: .relaxed)
        modes.store(modes.load(ordering: .relaxed) << 8, ordering: .relaxed)
        let left = leftWait.load(ordering: .relaxed)
        let last = ended.load(ordering: .relaxed)
        if left == 0 || runs == 0 && now &- last > Self.longestReentry {
            leftWait.store(now, ordering: .relaxed)
            endSaturation(left, at: last)
        }
        noteThread()
        beginTurn(at: now)
    }

    /// The run that has just been entered is in the mode that the app gave the number `index`, 1 … 255.
    func noteMode(_ index: UInt8) {
        modes.store(modes.load(ordering: .relaxed) & ~0xff | UInt64(index), ordering: .relaxed)
    }

    /// The loop runs, in a mode that the app gave the number `index`, and was entered before it was followed.
    ///
    /// May be called on any thread: what the loop itself tells in the meantime counts.
    func adoptMode(_ index: UInt8) {
        _ = modes.compareExchange(expected: 0, desired: UInt64(index), ordering: .relaxed)
    }

    /// The loop is in a run, which may have been entered before it was followed.
    private func noteRun() {
        if depth.load(ordering: .relaxed) == 0 { depth.store(1, ordering: .relaxed) }
    }

    /// The loop has left its wait.
    func leaveWait(at now: UInt64) {
        noteRun()
        waits.end(at: now)
        leftWait.store(now, ordering: .relaxed)
        noteThread()
        beginTurn(at: now)
    }

    /// The loop comes to its sources.
    ///
    /// The second time in one turn means that it did not wait: a new turn.
    func reachSources(now: () -> UInt64) {
        noteRun()
        guard reachedSources.load(ordering: .relaxed) else {
            return reachedSources.store(true, ordering: .relaxed)
        }
        beginTurn(at: now())
        reachedSources.store(true, ordering: .relaxed)
    }

    /// The loop is about to wait.
    func enterWait(at now: UInt64) {
        noteRun()
        let left = leftWait.load(ordering: .relaxed)
        leftWait.store(0, ordering: .relaxed)
        endTurn(at: now)
        waits.begin(at: now)
        endSaturation(left, at: now)
    }

    /// The loop, which had left its wait at `left`, waits, or does what counts as a wait.
    private func endSaturation(_ left: UInt64, at now: UInt64) {
        guard left != 0, saturated.load(ordering: .relaxed) == left else { return }
        saturated.store(0, ordering: .relaxed)
        saturatedEnd.store(now, ordering: .releasing)
        alarm.ring()
    }

    /// The loop is left.
    ///
    /// If that was a nested run, the callout that made it goes on, as a turn measured anew.
    func exit(at now: UInt64) {
        let outer = max(depth.load(ordering: .relaxed) - 1, 0)
        depth.store(outer, ordering: .relaxed)
        modes.store(modes.load(ordering: .relaxed) >> 8, ordering: .relaxed)
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

    /// A turn of a loop without observers begins.
    func beginTurn(at now: UInt64) {
        endTurn(at: now)
        reachedSources.store(false, ordering: .relaxed)
        inGap.store(false, ordering: .relaxed)
        turn.store(turn.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        began.store(now, ordering: .releasing)
        alarm.wakeIfParked()
    }

    /// That turn ends.
    ///
    /// Ending a turn that has not begun does nothing.
    func endTurn(at now: UInt64) {
        let current = began.load(ordering: .relaxed)
        guard current != 0 else { return }
        // After the end of an earlier turn that was told (`stalledTurnEnd`), and before the turn is seen to be over.
        ended.store(now, ordering: .releasing)
        histogram.record(now &- current)
        began.store(0, ordering: .releasing)
        // With the one in `markStalled`: either this sees the mark, or the watchdog sees that the turn is over.
        alarm.fence.light()
        guard stalled.load(ordering: .relaxed) == current else { return }
        stalledEnd.store(now, ordering: .sequentiallyConsistent)
        alarm.ring()
    }
}

extension TurnRecorder {
    /// Remembers which thread runs the loop.
    ///
    /// One comparison; a system call only when the thread is another one than before.
    func noteThread() {
        let handle = UInt(pthread_self())
        guard threadHandle.load(ordering: .relaxed) != handle else { return }
        threadHandle.store(handle, ordering: .relaxed)
        thread.store(clinux_gettid(), ordering: .releasing)
    }
}

// MARK: - On the watchdog

extension TurnRecorder {
    /// What the loop is doing now.
    func snapshot() -> TurnSnapshot {
        var snapshot = TurnSnapshot(began: nil, number: 0, nesting: 0, leftWait: 0)
        // A turn's beginning is its identity: if it is unchanged afterwards, all three values belong to it. A loop that
        // keeps turning in the middle of three loads is healthy, and its last answer is good enough.
        for _ in 0..<8 {
            let began = began.load(ordering: .sequentiallyConsistent)
            snapshot = TurnSnapshot(
                began: began == 0 ? nil : began,
                number: turn.load(ordering: .acquiring),
                nesting: max(depth.load(ordering: .relaxed) - 1, 0),
                leftWait: leftWait.load(ordering: .relaxed),
                mode: UInt8(modes.load(ordering: .relaxed) & 0xff),
                isGap: inGap.load(ordering: .relaxed)
            )
            if self.began.load(ordering: .sequentiallyConsistent) == began { break }
        }
        return snapshot
    }

    /// The thread that ran the loop last; `nil` before its first turn.
    var lastThread: Int32? {
        let thread = thread.load(ordering: .acquiring)
        return thread == 0 ? nil : thread
    }

    /// Asks to be told when the turn that began at `began` ends.
    ///
    /// If it is already over, its end is kept and the alarm rings at once: the loop has passed the mark and will not ring.
    ///
    /// - Returns: The turn's end, if it is over. Where it ended before the mark was there, and others after it, this is the
    ///   end of the last of them: late by what has passed since the look that found the turn.
    @discardableResult
    func markStalled(_ began: UInt64) -> UInt64? {
        stalledEnd.store(0, ordering: .sequentiallyConsistent)
        stalled.store(began, ordering: .sequentiallyConsistent)
        alarm.fence.heavy()
        guard let end = stalledTurnEnd(began) else { return nil }
        let told = stalledEnd.compareExchange(expected: 0, desired: end, ordering: .sequentiallyConsistent)
        alarm.ring()
        return told.exchanged ? end : told.original
    }

    /// When the marked turn ended, or `nil` while it lasts.
    func stalledTurnEnd(_ began: UInt64) -> UInt64? {
        guard self.began.load(ordering: .sequentiallyConsistent) != began else { return nil }
        // In this order: the loop ends another turn only after it has told the end of the marked one.
        let last = ended.load(ordering: .sequentiallyConsistent)
        let told = stalledEnd.load(ordering: .sequentiallyConsistent)
        // Not told: the turn ended before the mark was there, or the loop is between ending it and telling.
        return told != 0 ? told : last
    }

    /// Asks to be told when the loop, which left its wait at `left`, waits again.
    func markSaturated(_ left: UInt64) {
        saturatedEnd.store(0, ordering: .relaxed)
        saturated.store(left, ordering: .sequentiallyConsistent)
        alarm.fence.heavy()
    }

    /// When the marked saturation ended, as far as that can be known.
    var saturationEnd: UInt64? {
        let told = saturatedEnd.load(ordering: .acquiring)
        if told != 0 { return told }
        // A loop that has been left, and not entered again, does not wait: it ended.
        let isLeft = depth.load(ordering: .relaxed) == 0 && began.load(ordering: .relaxed) == 0
        return isLeft ? ended.load(ordering: .relaxed) : nil
    }

    /// The stall's end has been seen.
    func clearStalled() {
        stalled.store(0, ordering: .sequentiallyConsistent)
    }
}
