import Testing

@testable import StallWatch

/// Saturation at a threshold of 1,000.
@Suite struct SaturationDetectorTests {
    private var detector = SaturationDetector(threshold: 1_000)

    /// Returns the state of a loop in its turn `number` that has not waited since `leftWait`.
    private func fed(_ number: UInt64, since leftWait: UInt64, inTurn: Bool = true, isGap: Bool = false) -> TurnSnapshot
    {
        TurnSnapshot(
            began: inTurn ? leftWait + number : nil, number: number, nesting: 0, leftWait: leftWait, isGap: isGap
        )
    }

    private func waiting(_ number: UInt64) -> TurnSnapshot {
        TurnSnapshot(began: nil, number: number, nesting: 0, leftWait: 0)
    }

    @Test mutating func aLoopWithoutAWaitForTheThresholdIsSaturated() {
        #expect(detector.decide(fed(5, since: 100), at: 200) == nil)
        #expect(detector.decide(fed(900, since: 100), at: 1_099) == nil)
        let action = detector.decide(fed(901, since: 100), at: 1_100)
        #expect(action == .begin(.init(since: 100, firstTurn: 5, lastTurn: 901, nesting: 0)))
        #expect(detector.decide(fed(950, since: 100), at: 1_200) == nil)
        #expect(
            detector.decide(waiting(990), at: 1_300)
                == .end(.init(since: 100, firstTurn: 5, lastTurn: 990, nesting: 0))
        )
        #expect(detector.current == nil)
    }

    /// A single long turn is a stall, which the stall detector reports.
    @Test mutating func oneEndlessTurnIsNoSaturation() {
        for time in stride(from: 200, to: 100_000, by: 500) as StrideTo<UInt64> {
            #expect(detector.decide(fed(5, since: 100), at: time) == nil)
        }
    }

    @Test mutating func aLoopThatWaitsInBetweenIsNotSaturated() {
        for round in 1...50 as ClosedRange<UInt64> {
            #expect(detector.decide(fed(round * 10, since: round * 900), at: round * 900 + 1) == nil)
            #expect(detector.decide(fed(round * 10 + 5, since: round * 900), at: round * 900 + 899) == nil)
        }
    }

    @Test mutating func aPollBetweenTwoTurnsDoesNotEndASaturation() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        #expect(detector.decide(fed(500, since: 100, inTurn: false), at: 1_200) != nil)
        #expect(detector.decide(fed(600, since: 100, inTurn: false), at: 1_300) == nil)
        #expect(detector.current?.lastTurn == 600)
    }

    @Test mutating func aLoopThatExitsEndsItsSaturation() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        _ = detector.decide(fed(500, since: 100), at: 1_200)
        let last = detector.decide(fed(500, since: 100, inTurn: false), at: 1_300)
        #expect(last == .end(.init(since: 100, firstTurn: 1, lastTurn: 500, nesting: 0)))
    }

    @Test mutating func theTimeBetweenTwoRunsDoesNotCount() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        #expect(detector.decide(fed(2, since: 100, isGap: true), at: 1_200) == nil)
        #expect(detector.decide(fed(3, since: 100), at: 1_201) == nil, "the time counts from the end of the gap")
    }

    @Test mutating func aWaitBetweenTwoPollsEndsASaturation() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        _ = detector.decide(fed(500, since: 100), at: 1_200)
        #expect(
            detector.decide(fed(700, since: 1_250), at: 1_300)
                == .end(.init(since: 100, firstTurn: 1, lastTurn: 700, nesting: 0))
        )
        #expect(detector.decide(fed(701, since: 1_250), at: 2_250) == nil, "no poll has seen the first turn end")
        #expect(detector.decide(fed(702, since: 1_250), at: 2_251) != nil)
    }
}
