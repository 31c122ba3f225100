import Synchronization
import Testing

@testable import StallWatch

/// Activities in, turns out.
///
/// Times are small numbers: the recorder knows no clock.
@Suite struct TurnRecorderTests {
    let alarm = WatchdogAlarm()
    let recorder: TurnRecorder

    init() {
        recorder = TurnRecorder(alarm: alarm)
    }

    /// What most tests are about.
    private struct Turn: Equatable {
        var number: UInt64
        var began: UInt64?
        var nesting: Int
    }

    private var now: Turn {
        let snapshot = recorder.snapshot()
        return Turn(number: snapshot.number, began: snapshot.began, nesting: snapshot.nesting)
    }

    private func turn(_ number: UInt64, began: UInt64?, nesting: Int = 0) -> Turn {
        Turn(number: number, began: began, nesting: nesting)
    }

    @Test func aLoopThatHasNotRunIsBetweenTurns() {
        #expect(now == turn(0, began: nil))
    }

    @Test func enteringBeginsATurnAndWaitingEndsIt() {
        recorder.enter(at: 10)
        #expect(now == turn(1, began: 10))
        recorder.reachSources { 11 }
        #expect(now == turn(1, began: 10))
        recorder.enterWait(at: 20)
        #expect(now == turn(1, began: nil))
    }

    /// Timers and main-queue blocks run after AfterWaiting, and the pass that follows belongs to them.
    @Test func leavingTheWaitAndThenReachingTheSourcesIsOneTurn() {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        recorder.enterWait(at: 20)
        recorder.leaveWait(at: 30)
        #expect(now == turn(2, began: 30))
        recorder.reachSources { 35 }
        #expect(now == turn(2, began: 30))
        recorder.enterWait(at: 40)
        #expect(now == turn(2, began: nil))
    }

    /// A loop that is always fed never waits: each pass that handles sources is a turn.
    @Test func reachingTheSourcesAgainWithoutAWaitIsANewTurn() {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        for pass in 2...100 as ClosedRange<UInt64> {
            recorder.reachSources { pass * 10 }
            #expect(now == turn(pass, began: pass * 10))
        }
        recorder.enterWait(at: 2_000)
        #expect(now == turn(100, began: nil))
    }

    @Test func theClockIsReadAtTheSourcesOnlyForANewTurn() {
        var reads = 0
        let clock: () -> UInt64 = {
            reads += 1
            return 50
        }
        recorder.enter(at: 10)
        recorder.reachSources(now: clock)
        #expect(reads == 0)
        recorder.reachSources(now: clock)
        #expect(reads == 1)
    }

    /// `RunLoop.run()` leaves the loop and enters it again for every source that was handled.
    @Test func leavingAndEnteringAgainIsANewTurn() {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        recorder.exit(at: 20)
        #expect(now == turn(1, began: nil))
        recorder.enter(at: 21)
        #expect(now == turn(2, began: 21))
        recorder.reachSources { 22 }
        #expect(now == turn(2, began: 21))
    }

    @Test(arguments: [true, false])
    func aNestedRunHasTurnsOfItsOwn(fromTimer: Bool) {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        if fromTimer {
            recorder.enterWait(at: 12)
            recorder.leaveWait(at: 13)
        }
        let outer = recorder.snapshot().number

        recorder.enter(at: 20)
        #expect(now == turn(outer + 1, began: 20, nesting: 1))
        recorder.reachSources { 21 }
        recorder.enterWait(at: 30)
        #expect(now == turn(outer + 1, began: nil, nesting: 1))
        recorder.leaveWait(at: 40)
        #expect(now == turn(outer + 2, began: 40, nesting: 1))

        recorder.exit(at: 50)
        #expect(now == turn(outer + 3, began: 50))
        recorder.reachSources { 60 }
        #expect(now == turn(outer + 4, began: 60))
        recorder.exit(at: 70)
        #expect(now == turn(outer + 4, began: nil))
    }

    @Test func nestingCountsEveryLevel() {
        for depth in 0..<5 {
            recorder.enter(at: UInt64(depth) + 1)
            #expect(recorder.snapshot().nesting == depth)
        }
        for depth in (0..<4).reversed() {
            recorder.exit(at: UInt64(20 - depth))
            #expect(recorder.snapshot().nesting == depth)
        }
        recorder.exit(at: 30)
        #expect(now == turn(9, began: nil))
    }

    /// Observers that are added in a callout see the loop's exit without its entry.
    @Test func aLoopThatIsJoinedInTheMiddleOfARunIsFollowedAllTheSame() {
        recorder.leaveWait(at: 10)
        #expect(now == turn(1, began: 10))
        recorder.exit(at: 20)
        #expect(now == turn(1, began: nil))
        recorder.enter(at: 30)
        #expect(now == turn(2, began: 30))
        recorder.exit(at: 40)
        #expect(now == turn(2, began: nil))
    }
}

// MARK: - The end of a saturation

extension TurnRecorderTests {
    @Test func theWaitThatEndsASaturationIsTold() {
        recorder.leaveWait(at: 10)
        recorder.markSaturated(10)
        recorder.reachSources { 20 }
        recorder.reachSources { 30 }
        #expect(recorder.saturationEnd == nil)
        recorder.enterWait(at: 40)
        #expect(recorder.saturationEnd == 40)
        recorder.leaveWait(at: 50)
        recorder.enterWait(at: 60)
        #expect(recorder.saturationEnd == 40, "later waits are none of its business")
        recorder.leaveWait(at: 70)
        recorder.markSaturated(70)
        #expect(recorder.saturationEnd == nil)
    }

    @Test func aLoopThatIsLeftIsSaturatedNoLonger() {
        recorder.enter(at: 10)
        recorder.markSaturated(10)
        recorder.exit(at: 40)
        #expect(recorder.saturationEnd == 40)
        recorder.enter(at: 50 + TurnRecorder.longestReentry)
        #expect(recorder.saturationEnd == 40)
    }
}

// MARK: - Runs that were entered before the loop was followed

extension TurnRecorderTests {
    /// How the recorder is told that a run is on which it has not seen being entered.
    enum FirstSign: CaseIterable { case waits, leavesWait, reachesSources }

    private func showRun(_ sign: FirstSign, at time: UInt64) {
        switch sign {
        case .waits: recorder.enterWait(at: time)
        case .leavesWait: recorder.leaveWait(at: time)
        case .reachesSources: recorder.reachSources { time }
        }
    }

    @Test(arguments: FirstSign.allCases) func aNestedRunOfARunThatWasOnAlreadyIsNested(sign: FirstSign) {
        showRun(sign, at: 10)
        recorder.leaveWait(at: 20)
        recorder.enter(at: 30)
        #expect(recorder.snapshot().nesting == 1)
        recorder.exit(at: 40)
        #expect(recorder.snapshot().began == 40, "the callout that made the nested run goes on")
        #expect(recorder.snapshot().nesting == 0)
        recorder.exit(at: 50)
        #expect(recorder.snapshot().began == nil)
    }

    @Test func theModeOfARunThatWasOnAlreadyIsTakenOver() {
        recorder.adoptMode(2)
        recorder.leaveWait(at: 10)
        #expect(recorder.snapshot().mode == 2)
        recorder.enter(at: 20)
        recorder.noteMode(1)
        #expect(recorder.snapshot().mode == 1)
        recorder.exit(at: 30)
        #expect(recorder.snapshot().mode == 2)
    }

    @Test func aModeThatTheLoopHasToldIsNotTakenOver() {
        recorder.enter(at: 10)
        recorder.noteMode(1)
        recorder.adoptMode(2)
        #expect(recorder.snapshot().mode == 1)
    }
}

// MARK: - Waits, modes and gaps

extension TurnRecorderTests {
    private var leftWait: UInt64 { recorder.snapshot().leftWait }

    /// Saturation is told by the time since the loop last came to wait.
    @Test func theMomentAtWhichTheLoopLeftItsWaitIsKeptOverManyTurns() {
        #expect(leftWait == 0)
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        for pass in 2...50 as ClosedRange<UInt64> {
            recorder.reachSources { pass * 10 }
            #expect(leftWait == 10)
        }
        recorder.enterWait(at: 600)
        #expect(leftWait == 0)
        recorder.leaveWait(at: 700)
        #expect(leftWait == 700)
    }

    @Test func aLoopThatComesRightBackHasNotWaited() {
        let first: UInt64 = 1_000_000_000
        recorder.enter(at: first)
        recorder.exit(at: first + 10)
        let soon = first + 10 + TurnRecorder.longestReentry
        recorder.enter(at: soon)
        #expect(leftWait == first)
        recorder.exit(at: soon + 10)
        let late = soon + 10 + TurnRecorder.longestReentry + 1
        recorder.enter(at: late)
        #expect(leftWait == late)
    }

    @Test func aNestedRunDoesNotChangeWhenTheLoopLeftItsWait() {
        recorder.enter(at: 10)
        recorder.enter(at: 10 + 2 * TurnRecorder.longestReentry)
        #expect(leftWait == 10)
    }

    @Test func everyRunHasItsMode() {
        recorder.enter(at: 10)
        #expect(recorder.snapshot().mode == 0)
        recorder.noteMode(3)
        #expect(recorder.snapshot().mode == 3)
        recorder.enter(at: 20)
        #expect(recorder.snapshot().mode == 0, "a nested run in a mode that has no name")
        recorder.noteMode(255)
        #expect(recorder.snapshot().mode == 255)
        recorder.exit(at: 30)
        #expect(recorder.snapshot().mode == 3)
        recorder.exit(at: 40)
        #expect(recorder.snapshot().mode == 0)
    }

    @Test func theTimeBetweenTwoRunsCountsWhereItIsAskedFor() {
        let recorder = TurnRecorder(alarm: alarm, watchGaps: true)
        recorder.enter(at: 10)
        #expect(!recorder.snapshot().isGap)
        recorder.exit(at: 20)
        #expect(recorder.snapshot().isGap)
        #expect(recorder.snapshot().began == 20)
        recorder.enter(at: 30)
        #expect(!recorder.snapshot().isGap)
        #expect(recorder.snapshot().began == 30)
        recorder.enter(at: 40)
        recorder.exit(at: 50)
        #expect(!recorder.snapshot().isGap, "the callout of the outer run goes on")
    }

    @Test func theThreadThatRunsTheLoopIsKnown() throws {
        #expect(recorder.lastThread == nil)
        recorder.enter(at: 10)
        #expect(recorder.lastThread == ownThread())
        let isDone = Semaphore()
        let other = Mutex<Int32?>(nil)
        let thread = try WorkerThread(name: "test-loop") { [recorder] in
            recorder.leaveWait(at: 20)
            other.withLock { $0 = ownThread() }
            isDone.post()
        }
        thread.join()
        try #require(isDone.wait(until: 0))
        #expect(recorder.lastThread == other.withLock { $0 })
        #expect(recorder.lastThread != ownThread())
    }
}

// MARK: - Stalled turns

extension TurnRecorderTests {
    @Test func theEndOfAMarkedTurnIsKeptAndRung() {
        recorder.enter(at: 10)
        #expect(recorder.markStalled(10) == nil)
        #expect(recorder.stalledTurnEnd(10) == nil)
        #expect(!alarm.sleep(until: 0))

        recorder.enterWait(at: 50)
        #expect(recorder.stalledTurnEnd(10) == 50)
        #expect(alarm.sleep(until: 0))

        recorder.leaveWait(at: 60)
        recorder.enterWait(at: 70)
        #expect(recorder.stalledTurnEnd(10) == 50)
        #expect(!alarm.sleep(until: 0), "only the marked turn rings")
    }

    /// The turn may end between the look that found it late and the mark.
    @Test func theEndOfATurnThatWasMarkedTooLateIsKeptAndRung() {
        recorder.enter(at: 10)
        recorder.enterWait(at: 50)
        #expect(recorder.markStalled(10) == 50)
        #expect(alarm.sleep(until: 0), "nobody else tells the watchdog")
        recorder.leaveWait(at: 60)
        recorder.enterWait(at: 70)
        #expect(recorder.stalledTurnEnd(10) == 50)
    }

    @Test(arguments: [0, 1, 2])
    func aMarkedTurnEndsHoweverTheLoopGoesOn(way: Int) {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        #expect(recorder.markStalled(10) == nil)
        switch way {
        case 0: recorder.exit(at: 50)
        case 1: recorder.enter(at: 50)
        default: recorder.reachSources { 50 }
        }
        #expect(recorder.stalledTurnEnd(10) == 50)
        #expect(alarm.sleep(until: 0))
    }

    @Test func aClearedMarkDoesNotRing() {
        recorder.enter(at: 10)
        #expect(recorder.markStalled(10) == nil)
        recorder.clearStalled()
        recorder.enterWait(at: 20)
        #expect(!alarm.sleep(until: 0))
    }

    @Test func oneStallAfterAnotherIsToldApart() {
        recorder.enter(at: 10)
        #expect(recorder.markStalled(10) == nil)
        recorder.reachSources { 11 }
        recorder.reachSources { 20 }
        #expect(recorder.stalledTurnEnd(10) == 20)
        recorder.clearStalled()
        #expect(recorder.markStalled(20) == nil)
        #expect(recorder.stalledTurnEnd(20) == nil)
        recorder.enterWait(at: 90)
        #expect(recorder.stalledTurnEnd(20) == 90)
    }
}

// MARK: - The parked watchdog

extension TurnRecorderTests {
    @Test func aTurnWakesAParkedWatchdog() {
        // With the flag up; were nobody to wake it, this would never return.
        alarm.park {
            recorder.enter(at: 10)
            return true
        }
        #expect(recorder.snapshot().began == 10)
    }

    @Test func noTurnRingsWhileTheWatchdogIsNotParked() {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        recorder.reachSources { 12 }
        recorder.enterWait(at: 13)
        recorder.leaveWait(at: 14)
        recorder.exit(at: 15)
        #expect(!alarm.sleep(until: 0))
    }
}

/// The calling thread's kernel id: the link leads to "4700/task/4711" (proc(5)).
private func ownThread() -> Int32? {
    readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) }
}
