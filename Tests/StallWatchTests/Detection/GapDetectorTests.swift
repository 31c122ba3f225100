import Testing

@testable import StallWatch

@Suite struct GapDetectorTests {
    private var detector = GapDetector()
    private static let tolerance = GapDetector.tolerance

    /// The clocks at `monotonic`, after the machine was suspended and the watchdog kept from the CPU for so long.
    private func clocks(_ monotonic: UInt64, suspended: UInt64 = 0, waited: UInt64 = 0) -> GapDetector.Reading {
        GapDetector.Reading(monotonic: monotonic, boot: monotonic + suspended, occupied: waited)
    }

    @Test mutating func theFirstWakeUpIsNoGap() {
        #expect(detector.wake(at: clocks(10_000_000_000), firstBegin: nil) == nil)
    }

    @Test(arguments: [0, 1, GapDetector.tolerance])
    mutating func aLittleLatenessIsNormal(late: UInt64) {
        detector.sleep(at: clocks(1_000), until: 2_000)
        #expect(detector.wake(at: clocks(2_000 + late), firstBegin: nil) == nil)
    }

    @Test mutating func anEarlyWakeUpIsNormal() {
        detector.sleep(at: clocks(1_000), until: 2_000_000_000)
        #expect(detector.wake(at: clocks(1_500), firstBegin: nil) == nil)
    }

    @Test mutating func aWatchdogThatIsLateWasStoppedWithTheProcess() {
        detector.sleep(at: clocks(1_000), until: 2_000)
        #expect(detector.wake(at: clocks(2_001 + Self.tolerance), firstBegin: nil) == .processStopped)
    }

    /// The loops were short of CPU too, and that is what they are watched for.
    @Test mutating func aWatchdogThatWaitedForACPUIsNoGap() {
        detector.sleep(at: clocks(1_000, waited: 500), until: 2_000)
        let late = 3 * Self.tolerance
        #expect(detector.wake(at: clocks(2_000 + late, waited: 500 + late), firstBegin: nil) == nil)
        detector.sleep(at: clocks(1_000, waited: 500), until: 2_000)
        #expect(
            detector.wake(at: clocks(2_000 + late, waited: 500 + late / 2), firstBegin: nil) == .processStopped,
            "half of it is not explained"
        )
    }

    @Test mutating func timeInSuspensionIsAGapHoweverShortTheSleepWas() {
        detector.sleep(at: clocks(1_000), until: .max)
        #expect(detector.wake(at: clocks(1_001, suspended: Self.tolerance + 1), firstBegin: nil) == .suspended)
    }

    /// Two clocks are read one after the other.
    @Test mutating func clocksThatDifferByALittleAreNoSuspension() {
        detector.sleep(at: clocks(1_000, suspended: 100), until: .max)
        #expect(detector.wake(at: clocks(5_000, suspended: 60), firstBegin: nil) == nil)
        detector.sleep(at: clocks(1_000, suspended: 100), until: .max)
        #expect(detector.wake(at: clocks(5_000, suspended: 140), firstBegin: nil) == nil)
    }

    @Test mutating func aSuspensionIsToldOnce() {
        detector.sleep(at: clocks(1_000), until: .max)
        let after = clocks(2_000, suspended: 2 * Self.tolerance)
        #expect(detector.wake(at: after, firstBegin: nil) == .suspended)
        detector.sleep(at: after, until: .max)
        #expect(detector.wake(at: clocks(3_000, suspended: 2 * Self.tolerance), firstBegin: nil) == nil)
    }

    /// A parked watchdog has no deadline; what wakes it is a turn that begins.
    @Test mutating func aParkedWatchdogIsLateAfterTheTurnThatWokeIt() {
        detector.sleep(at: clocks(1_000), until: .max)
        let now = 60_000 + Self.tolerance
        #expect(detector.wake(at: clocks(now), firstBegin: 60_000) == nil)
        detector.sleep(at: clocks(1_000), until: .max)
        #expect(detector.wake(at: clocks(now), firstBegin: 59_999) == .processStopped)
    }

    @Test(arguments: [nil, 500])
    mutating func aParkedWatchdogThatNoTurnWokeIsNotLate(firstBegin: UInt64?) {
        detector.sleep(at: clocks(1_000), until: .max)
        #expect(detector.wake(at: clocks(1_000_000_000_000), firstBegin: firstBegin) == nil)
    }
}
