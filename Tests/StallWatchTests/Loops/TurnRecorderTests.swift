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

    /// A loop that always has events never waits: each pass that handles sources is a turn.
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
    @Test func aLoopObservedFromTheMiddleOfARunIsFollowed() {
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
