import Testing

@testable import StallWatch

/// The threshold is 1000.
@Suite struct SaturationDetectorTests {
    private var detector = SaturationDetector(threshold: 1_000)

    /// A loop in its turn `number`, which has not waited since `leftWait`.
    private func fed(_ number: UInt64, since leftWait: UInt64, inTurn: Bool = true, isGap: Bool = false) -> TurnSnapshot
    {
        TurnSnapshot(
            began: inTurn ? leftWait + number : nil, number: number, nesting: 0, leftWait: leftWait, isGap: isGap
        )
    }

    private func waiting(_ number: UInt64) -> TurnSnapshot {
        TurnSnapshot(began: nil, number: number, nesting: 0, leftWait: 0)
    }

    @Test mutating func aLoopThatDoesNotWaitForTooLongIsSaturated() {
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

    /// One long turn is a stall, and that is the stall detector's business.
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

    @Test mutating func aLookBetweenTwoTurnsDoesNotEndIt() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        #expect(detector.decide(fed(500, since: 100, inTurn: false), at: 1_200) != nil)
        #expect(detector.decide(fed(600, since: 100, inTurn: false), at: 1_300) == nil)
        #expect(detector.current?.lastTurn == 600)
    }

    @Test mutating func aLoopThatIsLeftIsNotSaturated() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        _ = detector.decide(fed(500, since: 100), at: 1_200)
        let last = detector.decide(fed(500, since: 100, inTurn: false), at: 1_300)
        #expect(last == .end(.init(since: 100, firstTurn: 1, lastTurn: 500, nesting: 0)))
    }

    @Test mutating func theTimeBetweenTwoRunsDoesNotCount() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        #expect(detector.decide(fed(2, since: 100, isGap: true), at: 1_200) == nil)
        #expect(detector.decide(fed(3, since: 100), at: 1_201) == nil, "counted anew from here")
    }

    @Test mutating func aWaitThatNobodySawEndsIt() {
        _ = detector.decide(fed(1, since: 100), at: 100)
        _ = detector.decide(fed(500, since: 100), at: 1_200)
        #expect(
            detector.decide(fed(700, since: 1_250), at: 1_300)
                == .end(.init(since: 100, firstTurn: 1, lastTurn: 700, nesting: 0))
        )
        #expect(detector.decide(fed(701, since: 1_250), at: 2_250) == nil, "its first turn has not been seen to pass")
        #expect(detector.decide(fed(702, since: 1_250), at: 2_251) != nil)
    }
}
