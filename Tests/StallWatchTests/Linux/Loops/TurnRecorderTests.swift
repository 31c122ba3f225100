import LinuxSupport
import Synchronization
import Testing

@testable import StallWatch

/// The turns that follow from given activities.
///
/// Times are small numbers, because the recorder uses no clock.
@Suite struct TurnRecorderTests {
    let alarm = WatchdogAlarm()
    let recorder: TurnRecorder

    init() {
        recorder = TurnRecorder(alarm: alarm)
    }

    /// The values that most tests check.
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

    /// glibc gives a new thread the stack, and with it the pthread_t, of one that has ended.
    @Test func `each thread that runs the loop is noted`() throws {
        for _ in 0..<5 {
            let noted = Mutex<Set<Int32>>([])
            let thread = try WorkerThread(name: "loop") { [recorder] in
                recorder.rememberThread()
                noted.withLock { $0 = WorkerThread.ids }
            }
            thread.join()
            let last = try #require(recorder.lastThread)
            #expect(noted.withLock { $0 }.contains(last))
        }
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

    /// Timers and main-queue blocks run after AfterWaiting, and the pass that follows belongs to the same turn.
    @Test func `leaving the wait and then reaching the sources is one turn`() {
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

    /// A loop that always has events never waits: each pass that handles sources is a turn.
    @Test func `reaching the sources again without a wait is a new turn`() {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        for pass in 2...100 as ClosedRange<UInt64> {
            recorder.reachSources { pass * 10 }
            #expect(now == turn(pass, began: pass * 10))
        }
        recorder.enterWait(at: 2_000)
        #expect(now == turn(100, began: nil))
    }

    @Test func `the clock is read at the sources only for a new turn`() {
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

    /// `RunLoop.run()` leaves and enters the loop for every source that it handles.
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

    /// Observers that are added in a callout see the loop's exit, but not its entry.
    @Test func `a loop observed from the middle of a run is followed`() {
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

/// Runs that began before the loop was observed.
extension TurnRecorderTests {
    /// The first activity that shows a run whose beginning was not observed.
    enum FirstSign: CaseIterable { case waits, leavesWait, reachesSources }

    private func showRun(_ sign: FirstSign, at time: UInt64) {
        switch sign {
        case .waits: recorder.enterWait(at: time)
        case .leavesWait: recorder.leaveWait(at: time)
        case .reachesSources: recorder.reachSources { time }
        }
    }

    @Test(arguments: FirstSign.allCases) func aRunInsideAnUnobservedRunIsNested(sign: FirstSign) {
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

    @Test func theModeOfAnEarlierRunIsAdopted() {
        recorder.adoptMode(2)
        recorder.leaveWait(at: 10)
        #expect(recorder.snapshot().mode == 2)
        recorder.enter(at: 20)
        recorder.setMode(1)
        #expect(recorder.snapshot().mode == 1)
        recorder.exit(at: 30)
        #expect(recorder.snapshot().mode == 2)
    }

    @Test func aModeThatTheLoopNotedIsNotReplaced() {
        recorder.enter(at: 10)
        recorder.setMode(1)
        recorder.adoptMode(2)
        #expect(recorder.snapshot().mode == 1)
    }
}

/// Stalled turns.
extension TurnRecorderTests {
    @Test func theEndOfAMarkedTurnIsStoredAndRings() {
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

    /// The turn may end between the poll that found it late and the mark.
    @Test func `the end of a turn marked too late is stored and rings`() {
        recorder.enter(at: 10)
        recorder.enterWait(at: 50)
        #expect(recorder.markStalled(10) == 50)
        #expect(alarm.sleep(until: 0), "the loop does not ring for this turn")
        recorder.leaveWait(at: 60)
        recorder.enterWait(at: 70)
        #expect(recorder.stalledTurnEnd(10) == 50)
    }

    @Test(arguments: [0, 1, 2])
    func aMarkedTurnEndsAtEveryKindOfActivity(way: Int) {
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

    @Test func consecutiveStallsHaveEndsOfTheirOwn() {
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

/// The parked watchdog.
extension TurnRecorderTests {
    @Test func aTurnWakesAParkedWatchdog() {
        // The flag is set at this point; without a wake-up, `park` would never return.
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

@Suite struct WaitClockTests {
    private let clock = WaitClock()

    @Test func waitsAddUp() {
        #expect(clock.total(at: 50) == 0)
        clock.begin(at: 100)
        clock.end(at: 130)
        clock.begin(at: 200)
        clock.end(at: 205)
        #expect(clock.total(at: 300) == 35)
    }

    @Test func theCurrentWaitCountsSoFar() {
        clock.begin(at: 100)
        #expect(clock.total(at: 110) == 10)
        #expect(clock.total(at: 90) == 0, "the wait began after this time")
        clock.end(at: 120)
        #expect(clock.total(at: 130) == 20)
    }

    @Test func anEndWithoutABeginningIsNoWait() {
        clock.end(at: 1_000)
        #expect(clock.total(at: 2_000) == 0)
    }

    @Test func aRecorderNotesItsWaits() {
        let recorder = TurnRecorder(alarm: WatchdogAlarm())
        recorder.enter(at: 10)
        recorder.enterWait(at: 20)
        recorder.leaveWait(at: 50)
        recorder.reachSources { 51 }
        #expect(recorder.waits.total(at: 60) == 30)
        recorder.enterWait(at: 60)
        #expect(recorder.waits.total(at: 65) == 35)
    }
}
