import Testing

@testable import StallWatch

/// Saturation at a threshold of 1,000 ms, polled every 10 ms; times are in milliseconds.
@Suite struct SaturationDetectorTests {
    private var detector = SaturationDetector(threshold: 1_000_000_000)
    private var time: UInt64 = 1_000
    private var idle: UInt64 = 0
    private var turns: UInt64 = 1
    /// The time in turns that are over.
    private var busy: UInt64 = 0
    private var actions: [PeriodAction] = []

    /// Lets time pass in periods of 10 ms, in each of which the loop is idle for some microseconds at first.
    private mutating func pass(
        _ milliseconds: UInt64, idle microseconds: UInt64 = 0, turns perPeriod: UInt64 = 3,
        inTurnSince began: UInt64? = nil, isWaitingUnobserved: Bool = false, countingFrom: UInt64 = 0
    ) {
        for _ in 0..<milliseconds / 10 {
            time += 10
            idle += microseconds
            turns += perPeriod
            var turn = TurnSnapshot(began: began.map { $0 * 1_000_000 }, number: turns, nesting: 0)
            turn.isWaitingUnobserved = isWaitingUnobserved
            let load = LoopLoad(time: time * 1_000_000, turns: turns, idle: idle * 1_000, busy: busy * 1_000_000)
            if let action = detector.decide(turn, load, countingFrom: countingFrom * 1_000_000) {
                actions.append(action)
            }
        }
    }

    private var isReported: Bool { actions.contains(.begin) }

    /// The reported end, in milliseconds.
    private var end: UInt64? {
        actions.lazy.compactMap { if case .end(let end) = $0 { end / 1_000_000 } else { nil } }.last
    }

    @Test mutating func aLoopWithoutAWaitForTheThresholdIsSaturated() {
        pass(300, idle: 10_000)
        pass(980)
        #expect(!isReported)
        pass(20)
        #expect(isReported)
        let start = (detector.start?.time ?? 0) / 1_000_000
        #expect((1_290...1_300).contains(start), "2 % of the time may be idle")
        #expect(actions.filter { $0 == .sample }.count >= 3, "samples are spread over the period")
    }

    /// The first pass of a new watchdog may take longer than the loop needs to become busy.
    @Test mutating func aSaturationBeginsBeforeTheFirstReading() {
        busy = 40
        pass(10, inTurnSince: 1_005)
        pass(1_500)
        #expect(detector.start?.time == 965_000_000, "40 ms before the turn that the first reading sees")
        #expect(detector.start?.turns == 0)
    }

    @Test mutating func timeBeforeALaterReadingDoesNotCount() {
        busy = 40
        pass(10, isWaitingUnobserved: true)
        pass(1_500)
        #expect(detector.start?.time == 1_020_000_000)
    }

    @Test mutating func timeBeforeTheFirstReadingMayNotCount() {
        busy = 40
        pass(1_500, countingFrom: 1_000)
        #expect(detector.start?.time == 1_000_000_000)
    }

    @Test mutating func shortWaitsDoNotHideASaturation() {
        pass(300, idle: 10_000)
        pass(1_100, idle: 190)
        #expect(isReported)
    }

    @Test mutating func aLoopThatIsIdleForMoreThanTwoPercentIsNotSaturated() {
        pass(20_000, idle: 210)
        #expect(!isReported)
        #expect(detector.start == nil)
        #expect(detector.nextPoll(at: 0) == nil)
    }

    /// A single long turn is a stall, which the stall detector reports.
    @Test mutating func oneLongTurnIsNoSaturation() {
        pass(100, idle: 10_000)
        pass(5_000, turns: 0, inTurnSince: 1_100)
        #expect(!isReported)
        pass(500)
        #expect(!isReported, "the time counts from the end of the turn")
    }

    @Test mutating func aSaturationEndsWhenTheLoopIsIdle() {
        pass(2_000)
        #expect(isReported)
        #expect(end == nil)
        pass(100, idle: 10_000, turns: 0)
        #expect(end == 3_000)
        #expect(detector.start == nil)
    }

    @Test mutating func aShortWaitDoesNotEndASaturation() {
        pass(2_000)
        pass(10, idle: 4_000)
        pass(1_000)
        #expect(end == nil)
    }

    @Test mutating func timeThatDoesNotCountIsNoSaturation() {
        pass(900)
        pass(10, countingFrom: 1_905)
        pass(900)
        #expect(!isReported)
    }

    @Test mutating func anUnobservedWaitIsNoSaturation() {
        pass(900)
        pass(10, isWaitingUnobserved: true)
        pass(900)
        #expect(!isReported)
    }

    @Test mutating func samplesOfALongSaturationAreBounded() {
        pass(600_000)
        #expect(actions.count <= 30)
    }
}
