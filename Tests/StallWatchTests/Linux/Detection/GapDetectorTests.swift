import Testing

@testable import StallWatch

@Suite struct GapDetectorTests {
    private var detector = GapDetector()
    private static let tolerance = GapDetector.tolerance

    /// The clocks at `monotonic`, after the machine was suspended and the watchdog waited for a CPU for the given
    /// times.
    private static func clocks(_ monotonic: UInt64, suspended: UInt64 = 0, waited: UInt64 = 0) -> GapDetector.Reading {
        GapDetector.Reading(monotonic: monotonic, boot: monotonic + suspended, occupied: waited)
    }

    private mutating func wake(at reading: GapDetector.Reading, firstBegin: UInt64? = nil, stolen: UInt64 = 0)
        -> GapDetector.Gap?
    {
        detector.wake(at: reading, firstBegin: firstBegin) { stolen }
    }

    /// A sleep from 1,000 ns on, and the gap that the wake-up shows.
    private struct Case: CustomTestStringConvertible {
        var testDescription: String
        var slept = GapDetectorTests.clocks(1_000)
        var deadline: UInt64 = 2_000
        var woken: GapDetector.Reading
        var firstBegin: UInt64?
        var stolen: UInt64 = 0
        var gap: GapDetector.Gap?
    }

    private static let late = 3 * tolerance
    private static let waited = clocks(1_000, waited: 500)
    private static let suspended = clocks(1_000, suspended: 100)
    private static let cases = [
        Case(testDescription: "on time", woken: clocks(2_000)),
        Case(testDescription: "one nanosecond late", woken: clocks(2_001)),
        Case(testDescription: "as late as is normal", woken: clocks(2_000 + tolerance)),
        Case(testDescription: "later", woken: clocks(2_001 + tolerance), gap: .held(.processStopped)),
        Case(testDescription: "too early", deadline: 2_000_000_000, woken: clocks(1_500)),
        // The watchdog was busy, and is too late already when it begins to sleep.
        Case(testDescription: "due before the sleep", deadline: 1, woken: clocks(1_000 + tolerance)),
        Case(
            testDescription: "due before the sleep, and later", deadline: 1, woken: clocks(1_001 + tolerance),
            gap: .held(.processStopped)),
        // The loops also waited for a CPU, and such delays are to be reported.
        Case(testDescription: "without a CPU", slept: waited, woken: clocks(2_000 + late, waited: 500 + late)),
        Case(
            testDescription: "without a CPU for half of the lateness", slept: waited,
            woken: clocks(2_000 + late, waited: 500 + late / 2), gap: .held(.processStopped)),
        Case(
            testDescription: "stolen and waiting time add up", woken: clocks(2_000 + late, waited: tolerance),
            stolen: tolerance, gap: .stolen),
        Case(
            testDescription: "one nanosecond is unexplained", woken: clocks(2_001 + late, waited: tolerance),
            stolen: tolerance, gap: .held(.processStopped)),
        // The two clocks are read one after the other.
        Case(testDescription: "clocks differ", slept: suspended, deadline: .max, woken: clocks(5_000, suspended: 60)),
        Case(testDescription: "clocks differ", slept: suspended, deadline: .max, woken: clocks(5_000, suspended: 140)),
        // A parked watchdog has no deadline; a turn that begins wakes it.
        Case(
            testDescription: "parked until a turn", deadline: .max, woken: clocks(60_000 + tolerance),
            firstBegin: 60_000),
        Case(
            testDescription: "parked for longer", deadline: .max, woken: clocks(60_000 + tolerance), firstBegin: 59_999,
            gap: .held(.processStopped)),
        Case(testDescription: "parked, and no turn began", deadline: .max, woken: clocks(1_000_000_000_000)),
        Case(
            testDescription: "parked since a turn", deadline: .max, woken: clocks(1_000_000_000_000), firstBegin: 500),
    ]

    @Test(arguments: cases) private mutating func `one sleep has a gap or none`(_ test: Case) {
        #expect(wake(at: test.slept) == nil, "the first wake-up is none")
        detector.sleep(at: test.slept, until: test.deadline)
        #expect(wake(at: test.woken, firstBegin: test.firstBegin, stolen: test.stolen) == test.gap)
    }

    /// Without schedstat the watchdog's own wait is not known, as in gVisor.
    @Test func `a process that ran meanwhile was not stopped`() {
        let late = 3 * Self.tolerance
        func gap(ran: UInt64) -> GapDetector.Gap? {
            var detector = GapDetector(processors: 2)
            detector.sleep(at: .init(monotonic: 1_000, boot: 1_000, occupied: 0, processTime: 500), until: 2_000)
            let woken = GapDetector.Reading(
                monotonic: 2_000 + late, boot: 2_000 + late, occupied: 0, processTime: 500 + ran)
            return detector.wake(at: woken, firstBegin: nil) { 0 }
        }
        #expect(gap(ran: late / 2) == nil, "other threads of the process ran")
        #expect(gap(ran: 2_000) == .held(.processStopped), "it may have run before the deadline, on two CPUs")
        #expect(gap(ran: 0) == .held(.processStopped))
    }

    /// A stall that continues while the host steals CPU is reported; a turn that only could not end in time is not.
    @Test mutating func stolenCPUTimeGivesOneGracePeriod() {
        let late = 3 * Self.tolerance
        for expected in [.stolen, nil, .stolen] as [GapDetector.Gap?] {
            detector.sleep(at: Self.clocks(1_000), until: 2_000)
            #expect(wake(at: Self.clocks(2_000 + late), stolen: late) == expected)
        }
        detector.sleep(at: Self.clocks(1_000), until: 2_000)
        #expect(wake(at: Self.clocks(2_000), stolen: late) == nil, "the watchdog is on time again")
        detector.sleep(at: Self.clocks(1_000), until: 2_000)
        #expect(wake(at: Self.clocks(2_000 + late), stolen: late) == .stolen)
    }

    @Test func theGracePeriodIsAFifthOfTheThreshold() {
        #expect(GapDetector.gracePeriod(threshold: 20_000_000) == 4_000_000)
        #expect(GapDetector.gracePeriod(threshold: 250_000_000) == 50_000_000)
        #expect(GapDetector.gracePeriod(threshold: 10_000_000_000) == 50_000_000)
    }

    /// Reading it takes 30 µs or more.
    @Test mutating func `stolen time is not read while the watchdog is on time`() {
        detector.sleep(at: Self.clocks(1_000), until: 2_000)
        var isAsked = false
        let gap = detector.wake(at: Self.clocks(2_000 + Self.tolerance), firstBegin: nil) {
            isAsked = true
            return 0
        }
        #expect(gap == nil)
        #expect(!isAsked)
    }

    @Test mutating func aSuspensionIsAGapEvenInAShortSleep() {
        detector.sleep(at: Self.clocks(1_000), until: .max)
        #expect(wake(at: Self.clocks(1_001, suspended: Self.tolerance + 1)) == .held(.suspended))
    }

    /// A thread may lose its CPU between the reads of two clocks.
    @Test mutating func `a difference within the uncertainty is no suspension`() {
        var woken = Self.clocks(1_001, suspended: 60_000_000)
        woken.uncertainty = 60_000_000
        detector.sleep(at: Self.clocks(1_000), until: .max)
        #expect(wake(at: woken) == nil)
        woken.boot += Self.tolerance + 1
        detector.sleep(at: Self.clocks(1_000), until: .max)
        #expect(wake(at: woken) == .held(.suspended))
    }

    @Test mutating func `the watchdog's own page faults are no stopped process`() {
        func woken(late: UInt64, faults: UInt64) -> GapDetector.Reading {
            var reading = Self.clocks(2_000 + late)
            reading.majorFaults = faults
            return reading
        }
        for (late, faults, gap) in [
            (GapDetector.faultTime, 1, nil), (3 * GapDetector.faultTime, 3, nil),
            (3 * GapDetector.faultTime, 0, .held(.processStopped)),
            // A process that was stopped for long reads some of its pages from the disk again.
            (60_000_000_000, 3, .held(.processStopped)),
        ] as [(UInt64, UInt64, GapDetector.Gap?)] {
            detector.sleep(at: Self.clocks(1_000), until: 2_000)
            #expect(wake(at: woken(late: late, faults: faults)) == gap)
        }
    }

    /// The stalled thread holds the only lock of an allocator, and the watchdog allocates.
    @Test mutating func `a watchdog that waited while it was awake is no stopped process`() {
        let (deadline, released, woken): (UInt64, UInt64, UInt64) = (33_000_000, 2_000_000_000, 2_000_100_000)
        for (own, late, gap) in [
            (released, 0, nil), (nil, 0, .held(.processStopped)),
            // A stop after that is found as before.
            (released, Self.tolerance, .held(.processStopped)),
        ] as [(UInt64?, UInt64, GapDetector.Gap?)] {
            detector.sleep(at: Self.clocks(1_000), ownUntil: own, until: deadline)
            #expect(wake(at: Self.clocks(woken + late)) == gap)
            detector.sleep(at: Self.clocks(1_000), ownUntil: own, until: .max)
            #expect(wake(at: Self.clocks(woken + late), firstBegin: 2_000_000) == (own == nil ? gap : nil))
        }
        detector.sleep(at: Self.clocks(1_000), ownUntil: released, until: deadline)
        let suspended = Self.clocks(woken, suspended: Self.tolerance + 1)
        #expect(wake(at: suspended) == .held(.suspended), "it was suspended meanwhile")
    }

    @Test mutating func aSuspensionIsReportedOnce() {
        detector.sleep(at: Self.clocks(1_000), until: .max)
        let after = Self.clocks(2_000, suspended: 2 * Self.tolerance)
        #expect(wake(at: after) == .held(.suspended))
        detector.sleep(at: after, until: .max)
        #expect(wake(at: Self.clocks(3_000, suspended: 2 * Self.tolerance)) == nil)
    }
}

@Suite struct RestingThreadsTests {
    @Test func `one thread that has not run shows that there was no stop`() {
        func rested(before: [Int32: UInt64], after: [Int32: UInt64]) -> Bool {
            var resting = RestingThreads()
            resting.begin([7 as Int32]) { _ in 1 }
            resting.begin(before.keys) { before[$0] }
            return resting.haveRested { after[$0] }
        }
        #expect(rested(before: [1: 10, 2: 20], after: [1: 11, 2: 20]))
        #expect(!rested(before: [1: 10, 2: 20], after: [1: 11, 2: 21]))
        #expect(!rested(before: [1: 10], after: [:]), "it has ended")
        #expect(!rested(before: [:], after: [1: 10, 7: 1]), "it has begun since")
    }
}

@Suite struct UnreadTimeTests {
    private var unread = UnreadTime()
    private static let limit = UnreadTime.limit

    /// Sleeps after some work, and wakes up too late; returns whether the time is to be read then.
    private mutating func isRead(afterWork work: UInt64 = 0, late: UInt64) -> Bool {
        unread.sleep(awakeSince: 1_000, at: 1_000 + work, until: 90_000_000)
        return unread.wake(at: 90_000_000 + late)
    }

    @Test mutating func `a wake-up that may be a gap is read`() {
        let read = [isRead(late: GapDetector.tolerance + 1), isRead(late: Self.limit), isRead(late: 1)]
        #expect(read == [true, false, true])
    }

    @Test mutating func `work and lateness add up until they are read`() {
        let read = [
            isRead(afterWork: Self.limit / 2, late: Self.limit / 4), isRead(afterWork: Self.limit / 4, late: 0),
            isRead(late: 1),
        ]
        #expect(read == [false, false, true])
        #expect(isRead(afterWork: Self.limit, late: 0) == false, "all was read before")
    }

    /// A ring may have woken it long before it got a CPU.
    @Test mutating func `a wake-up before its deadline is read`() {
        unread.sleep(awakeSince: 1_000, at: 2_000, until: 90_000_000)
        let read = [unread.wake(at: 5_000), isRead(late: Self.limit), isRead(late: 1)]
        #expect(read == [true, false, true])
    }

    @Test mutating func `a sleep without a deadline is read`() {
        let isFirstRead = unread.wake(at: 1_000)
        unread.sleep(awakeSince: 1_000, at: 2_000, until: .max)
        #expect([isFirstRead, unread.wake(at: 3_000)] == [true, true])
    }
}
