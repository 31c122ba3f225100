import StackCapture
import Testing

@testable import StallWatch

/// Spins, polled every 250 ms; times are in nanoseconds.
@Suite struct SpinDetectorTests {
    private var detector = SpinDetector()
    private var load = LoopLoad(time: 1_000_000_000, turns: 1, idle: 0, busy: 0)
    private var (cpu, runQueue): (UInt64, UInt64) = (0, 0)
    private var actions: [PeriodAction] = []

    /// Lets intervals pass with a number of turns of a duration, and a share of a CPU; between turns the loop waits.
    private mutating func pass(
        _ intervals: Int, turns: UInt64, of duration: UInt64 = 0, cpu share: Double, isOutside: Bool = false,
        working: Double = 0, runQueue: Double = 0, evidence: SpinDetector.Evidence = .none
    ) {
        for _ in 0..<intervals {
            load.time += SpinDetector.interval
            load.turns += turns
            load.busy += turns * duration
            if !isOutside {
                let rest = SpinDetector.interval - min(turns * duration, SpinDetector.interval)
                load.idle += rest - min(UInt64(working * Double(SpinDetector.interval)), rest)
            }
            load.isOutside = isOutside
            cpu += UInt64(share * Double(SpinDetector.interval))
            self.runQueue += UInt64(runQueue * Double(SpinDetector.interval))
            detector.add(.init(load: load, cpu: cpu, runQueue: self.runQueue))
            if let action = detector.decide(evidence) { actions.append(action) }
        }
    }

    /// A thread that turns for nothing is met in few places.
    @Test(
        arguments: [(8, 0, .none), (9, 0, .proof), (9, 18, .proof), (9, 19, .none), (0, 9, .refuted)]
            as [(Int, Int, SpinDetector.Evidence)])
    func `looks at the same stack count`(inMethod: Int, elsewhere: Int, evidence: SpinDetector.Evidence) {
        func stack(at address: UInt64) -> CapturedStack {
            CapturedStack(
                method: .ptrace, threadState: .running, frames: [CapturedFrame(address: address, isExact: true)],
                isComplete: true, heldNanoseconds: 0, captureNanoseconds: 0)
        }
        let stacks = [(stack(at: 10), inMethod), (stack(at: 90), elsewhere)].filter { $0.1 > 0 }
        #expect(SpinDetector.evidence(of: stacks, runMethod: 10..<20, runFunction: 30..<40) == evidence)
    }

    private var isReported: Bool { actions.contains(.begin) }

    @Test mutating func `the thread of a loop that waits is not read`() {
        #expect(detector.isDue(load))
        pass(1, turns: 1, cpu: 0)
        load.turns += 1
        load.time += SpinDetector.interval - 1
        #expect(!detector.isDue(load), "the interval is not over")
        load.time += 1
        #expect(detector.isDue(load))
        load.turns -= 1
        #expect(!detector.isDue(load), "the loop has not turned")
        load.isOutside = true
        #expect(detector.isDue(load))
    }

    /// As measured of a main-queue block that submits itself.
    @Test mutating func aLoopThatTurnsForNothingOnACPUSpins() {
        pass(12, turns: 60_000, of: 1_300, cpu: 0.99)
        #expect(!isReported)
        pass(2, turns: 60_000, of: 1_300, cpu: 0.99)
        #expect(isReported)
        pass(1, turns: 30_000, of: 1_300, cpu: 0.5)
        pass(2, turns: 2, of: 1_300, cpu: 0.01)
        #expect(actions.contains { if case .end = $0 { true } else { false } })
        #expect(detector.nextPoll(load) == nil)
    }

    @Test mutating func `waits for a CPU within turns count as no work`() {
        pass(14, turns: 30_000, of: 7_000, cpu: 0.5, runQueue: 0.49)
        #expect(isReported)
    }

    /// Numbers of a descriptor that the app does not read, which libdispatch watches on another thread: alone, in a debug build
    /// beside a compiler, and on another CPU of a virtual machine.
    @Test(arguments: [(5_800, 8_300), (1_900, 34_000), (1_070, 71_000)] as [(UInt64, UInt64)])
    mutating func aReadyDescriptorProvesASpin(turns: UInt64, duration: UInt64) {
        pass(14, turns: turns, of: duration, cpu: 0.38, evidence: .proof)
        #expect(isReported)
    }

    @Test mutating func manyMessagesAreNoSpin() {
        pass(400, turns: 5_800, of: 8_300, cpu: 0.38, evidence: .refuted)
        #expect((9...10).contains(actions.count), "it is examined every ten seconds")
        #expect(!isReported)
        #expect(!actions.contains(.sample), "the thread of a healthy loop is not stopped")
    }

    @Test mutating func `a loop with many messages may begin to spin`() {
        pass(3, turns: 5_800, of: 8_300, cpu: 0.38, evidence: .refuted)
        let refuted = load.time + SpinDetector.refutationLasts
        while load.time < refuted {
            pass(1, turns: 5_800, of: 8_300, cpu: 0.38)
            #expect(!detector.isAsking || load.time == refuted)
        }
        #expect(actions == [.drop])
        pass(14, turns: 5_800, of: 8_300, cpu: 0.38, evidence: .proof)
        #expect(isReported)
        #expect(detector.start?.load.time == refuted, "time before does not count")
    }

    @Test mutating func busyTurnsAreNoSpin() {
        pass(40, turns: 1_800, of: 130_000, cpu: 0.99, evidence: .proof)
        pass(40, turns: 700, of: 71_000, cpu: 0.99, evidence: .proof)
        pass(40, turns: 12_000, of: 16_000, cpu: 0.99)
        #expect(!isReported)
    }

    @Test mutating func aGameLoopIsNoSpin() {
        pass(40, turns: 15, of: 2_000, cpu: 1, working: 0.99)
        pass(40, turns: 3_000, of: 2_000, cpu: 1, working: 0.97)
        #expect(!isReported)
    }

    @Test mutating func aModeWithoutSourcesSpinsOutside() {
        pass(1, turns: 1, cpu: 0.99, isOutside: true)
        #expect(detector.nextPoll(load) != nil)
        pass(14, turns: 0, cpu: 0.99, isOutside: true, evidence: .proof)
        #expect(isReported)
        pass(1, turns: 1, cpu: 0.2)
        #expect(actions.last.map { if case .end = $0 { true } else { false } } == true)
    }

    @Test mutating func aSpinOnABusyMachineIsReported() {
        pass(14, turns: 30_000, of: 2_300, cpu: 0.6, runQueue: 0.38)
        #expect(isReported)
    }

    @Test mutating func oneSlowIntervalRestartsNothing() {
        pass(6, turns: 0, cpu: 0.99, isOutside: true, evidence: .proof)
        pass(1, turns: 0, cpu: 0.8, isOutside: true, evidence: .proof)
        pass(6, turns: 0, cpu: 0.99, isOutside: true, evidence: .proof)
        #expect(isReported)
    }

    @Test mutating func aProofMayComeLate() {
        pass(20, turns: 5_800, of: 8_300, cpu: 0.38)
        #expect(!isReported)
        pass(40, turns: 5_800, of: 8_300, cpu: 0.38)
        #expect(actions.count < 45, "an unproven pattern is examined at growing intervals")
        pass(8, turns: 5_800, of: 8_300, cpu: 0.38, evidence: .proof)
        #expect(isReported)
    }

    @Test mutating func workOutsideTheLoopIsNoSpin() {
        pass(1, turns: 1, cpu: 1, isOutside: true)
        pass(3, turns: 0, cpu: 1, isOutside: true)
        pass(1, turns: 0, cpu: 1, isOutside: true, evidence: .refuted)
        #expect(detector.nextPoll(load) == nil || !isReported)
        pass(40, turns: 0, cpu: 1, isOutside: true)
        #expect(!isReported)
        #expect(actions.filter { $0 == .sample }.count <= 4)
    }

    @Test mutating func anIdleLoopIsNotPolled() {
        pass(2, turns: 0, cpu: 0)
        #expect(detector.nextPoll(load) == nil)
        pass(2, turns: 0, cpu: 0, isOutside: true)
        #expect(detector.nextPoll(load) == nil)
    }

    @Test mutating func timeThatDoesNotCountIsNoSpin() {
        pass(10, turns: 60_000, of: 1_300, cpu: 0.99)
        load.time += SpinDetector.interval
        detector.add(.init(load: load, cpu: cpu), countingFrom: load.time - 1)
        _ = detector.decide(.none)
        pass(8, turns: 60_000, of: 1_300, cpu: 0.99)
        #expect(!isReported)
    }
}

/// Saturation at a threshold of 1,000 ms, polled every 10 ms; times are in milliseconds.
@Suite struct SaturationDetectorTests {
    private var detector = SaturationDetector(threshold: 1_000_000_000)
    private var time: UInt64 = 1_000
    private var idle: UInt64 = 0
    private var turns: UInt64 = 1
    /// The time in turns that are over.
    private var busy: UInt64 = 0
    /// The same of those since then, in microseconds.
    private var worked: UInt64 = 0
    private var actions: [PeriodAction] = []

    /// Lets time pass in periods of 10 ms, in each of which the loop is idle for some microseconds at first, and the
    /// thread works between turns for some.
    private mutating func pass(
        _ milliseconds: UInt64, idle microseconds: UInt64 = 0, betweenTurns: UInt64 = 0, turns perPeriod: UInt64 = 3,
        inTurnSince began: UInt64? = nil, isWaitingUnobserved: Bool = false, countingFrom: UInt64 = 0
    ) {
        for _ in 0..<milliseconds / 10 {
            time += 10
            idle += microseconds
            if began == nil { worked += 10_000 - microseconds - betweenTurns }
            turns += perPeriod
            var turn = TurnSnapshot(began: began.map { $0 * 1_000_000 }, number: turns, nesting: 0)
            turn.isWaitingUnobserved = isWaitingUnobserved
            let load = LoopLoad(
                time: time * 1_000_000, turns: turns, idle: idle * 1_000, busy: busy * 1_000_000 + worked * 1_000)
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

    @Test mutating func `a loop without a wait for the threshold is saturated`() {
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

    /// A poll may find that two readings have become old enough since the last one.
    @Test mutating func `a saturation begins before the first of two old readings`() {
        busy = 40
        pass(10, inTurnSince: 1_005)
        pass(10)
        time += 490
        worked += 490_000
        pass(10)
        #expect(detector.start?.time == 965_000_000)
        #expect(detector.start?.turns == 0)
    }

    @Test mutating func timeBeforeAnIdleOneDoesNotCount() {
        busy = 40
        pass(10, inTurnSince: 1_005)
        pass(20, idle: 2_000)
        time += 490
        worked += 490_000
        pass(10)
        #expect(detector.start?.time == 1_022_000_000, "idle for 2 ms between the last two old readings")
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

    @Test mutating func `a loop that is idle for more than two percent is not saturated`() {
        pass(20_000, idle: 210)
        #expect(!isReported)
        #expect(detector.start == nil)
        #expect(detector.nextPoll(at: 0) == nil)
    }

    /// As a game does that draws a thousand times a second, and asks its loop in between.
    @Test mutating func `a thread that works between short runs does not saturate its loop`() {
        pass(5_000, betweenTurns: 9_900)
        #expect(!isReported && detector.start == nil)
        pass(5_000, betweenTurns: 5_000)
        #expect(isReported)
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
