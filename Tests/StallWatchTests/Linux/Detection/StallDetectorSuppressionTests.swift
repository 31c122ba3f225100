import Testing

@testable import StallWatch

/// Time that does not count as part of a turn, with a threshold of 100.
@Suite struct StallDetectorSuppressionTests {
    private var detector = StallDetector(threshold: 100)
    private let turn = TurnSnapshot(began: 1_000, number: 1, nesting: 0)

    @Test mutating func aTurnCountsFromTheEndOfAPauseOn() {
        #expect(detector.decide(turn, at: 1_200, countingFrom: 1_150).nextPoll == 1_250)
        _ = detector.decide(turn, at: 1_250, countingFrom: 1_150)
        #expect(detector.stall?.start == 1_150)
        #expect(detector.stall?.turnBegan == 1_000)
    }

    @Test mutating func anEarlierPauseDoesNotMatter() {
        _ = detector.decide(turn, at: 1_100, countingFrom: 900)
        #expect(detector.stall?.start == 1_000)
    }

    @Test mutating func aDroppedStallIsMeasuredAnew() {
        _ = detector.decide(turn, at: 1_100)
        detector.measureAnew(from: 1_100)
        #expect(detector.stall == nil)
        #expect(detector.decide(turn, at: 1_199) == StallDetector.Decision(actions: [], nextPoll: 1_200))
        #expect(detector.decide(turn, at: 1_200).actions.count == 1)
    }

    @Test mutating func anAbandonedTurnIsNotPolledAgain() {
        _ = detector.decide(turn, at: 1_100)
        detector.abandon()
        #expect(detector.decide(turn, at: 5_000) == StallDetector.Decision())
        #expect(detector.decide(turn, at: 9_000) == StallDetector.Decision())
        let next = TurnSnapshot(began: 9_500, number: 2, nesting: 0)
        #expect(detector.decide(next, at: 9_600).actions.count == 1)
    }

    @Test mutating func aChangedThresholdAppliesFromTheNextPollOn() {
        #expect(detector.decide(turn, at: 1_050).nextPoll == 1_100)
        detector.threshold = 500
        #expect(detector.decide(turn, at: 1_100) == StallDetector.Decision(actions: [], nextPoll: 1_500))
        detector.threshold = 20
        #expect(detector.decide(turn, at: 1_101).actions.count == 1)
    }

    @Test mutating func aStallHasTheModeAndGapOfItsTurn() {
        let gap = TurnSnapshot(began: 1_000, number: 1, nesting: 0, mode: 3, isGap: true)
        _ = detector.decide(gap, at: 1_100)
        #expect(detector.stall?.mode == 3)
        #expect(detector.stall?.isGap == true)
    }
}
