import LinuxSupport
import StallReports
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

func evidence(
    cpu: UInt64 = 0, queue: UInt64 = 0, blocked: UInt64 = 0, _ observations: [Observation] = [],
    majorFaults: UInt64 = 0, kernelShare: Double? = nil,
    throttled: UInt64 = 0, switches: UInt64 = 1
) -> Evidence {
    Evidence(
        split: TimeSplit(
            onCPU: cpu * 1_000_000, runQueue: queue * 1_000_000, blocked: blocked * 1_000_000, uncertainty: 0
        ),
        observations: observations, start: 0, majorFaults: majorFaults, voluntarySwitches: switches,
        kernelShare: kernelShare, throttled: throttled * 1_000_000
    )
}

func concluded(
    cpu: UInt64 = 0, queue: UInt64 = 0, blocked: UInt64 = 0, _ observations: [Observation] = [],
    majorFaults: UInt64 = 0, kernelShare: Double? = nil, throttled: UInt64 = 0, switches: UInt64 = 1
) -> Cause {
    CauseRules.conclusion(
        from: evidence(
            cpu: cpu, queue: queue, blocked: blocked, observations, majorFaults: majorFaults, kernelShare: kernelShare,
            throttled: throttled, switches: switches))
}

/// Creates an observation of a thread in the system call of that name on this architecture.
func observe(at time: UInt64, in name: String, _ arguments: [UInt64] = [0, 1, 0, 0, 0, 0]) throws -> Observation {
    let number = try #require((0..<500).first { SystemCallNames.current.name($0) == name })
    return Observation(
        time: time * 1_000_000,
        activity: .waiting(SystemCall(number: number, arguments: arguments, stackPointer: 0, programCounter: 0))
    )
}

/// Creates an observation of a running thread, inside the system call of that name if there is one.
func running(at time: UInt64, in name: String?) throws -> Observation {
    var observation = Observation(time: time * 1_000_000, activity: .running)
    guard let name else { return observation }
    let number: Int = try #require(SystemCallNames.current.number(of: name))
    let call = CapturedCall(
        number: number, arguments: [0, 0, 0, 0, 0, 0], target: "/data/\(name)", hasReturned: true)
    observation.call = DescribedCall(call, function: nil, memory: GuardedMemory())
    return observation
}

@Suite struct CauseRulesTests {
    @Test(
        arguments: [
            (evidence(cpu: 90, blocked: 10), .cpu), (evidence(cpu: 10, queue: 90), .cpuContention),
            (evidence(cpu: 10, blocked: 90), .unknown),
            // If parts are equal, the CPU decides.
            (evidence(cpu: 48, blocked: 52), .cpu), (evidence(cpu: 47, blocked: 53), .unknown),
            // A quota explains the run queue.
            (evidence(cpu: 20, queue: 80, throttled: 40), .throttled),
            (evidence(cpu: 20, queue: 80, throttled: 39), .cpuContention),
            // Waits and kernel time of page faults. Measured: a cold file of 28,800 pages, touched page by page.
            (evidence(cpu: 1_570, blocked: 1_650, majorFaults: 28_800, kernelShare: 0.97), .paging),
            (evidence(cpu: 1_570, blocked: 50, majorFaults: 100, kernelShare: 0.97), .cpu),
            (evidence(blocked: 100, majorFaults: 10), .paging), (evidence(blocked: 100, majorFaults: 9), .unknown),
            (evidence(cpu: 100, majorFaults: 2_500), .paging), (evidence(cpu: 100, majorFaults: 2_499), .cpu),
            // The kernel handles faults, and took less.
            (evidence(cpu: 100, majorFaults: 2_500, kernelShare: 0.4), .cpu),
        ] as [(Evidence, Cause.Kind)])
    func theLargestPartDecides(evidence: Evidence, kind: Cause.Kind) {
        let cause = CauseRules.conclusion(from: evidence)
        #expect(cause.kind == kind)
        if evidence.majorFaults == 28_800 { #expect(cause.confidence == .certain) }
    }

    @Test func `each wait of a third of the time is named`() throws {
        let halves = [try running(at: 20, in: nil), try observe(at: 80, in: "clock_nanosleep")]
        let half = concluded(cpu: 50, blocked: 50, halves)
        #expect(half.kind == .cpu && half.other?.activity.call?.name == "clock_nanosleep")
        #expect(concluded(cpu: 70, blocked: 30, halves).other == nil)
        let waits = [try observe(at: 10, in: "clock_nanosleep"), try observe(at: 60, in: "futex")]
        let both = concluded(blocked: 100, waits)
        #expect(both.kind == .lock && both.other?.activity.call?.name == "clock_nanosleep")
        #expect(concluded(blocked: 100, [waits[1]]).other == nil)
    }

    /// A reading before the first sample has no stack, and so no place, and may have the largest weight.
    @Test func `a stack of the same call stands for a reading without one`() throws {
        let reading = try observe(at: 60, in: "futex")
        var sample = try observe(at: 70, in: "futex")
        (sample.place, sample.shown) = (1, .all)
        sample.waitChannel = "futex_do_wait"
        #expect(concluded(blocked: 75, [reading, sample]).observation?.place == 1)
        var other = try observe(at: 70, in: "flock")
        (other.place, other.shown) = (2, .all)
        let conclusion = concluded(blocked: 75, [reading, other])
        #expect(conclusion.observation?.place == nil, "another call says nothing about the reading")
    }

    /// On aarch64 a thread that was only read often has one frame: the lock is known when it was stopped.
    @Test func `a whole stack of the same call stands for a part of one`() throws {
        let one: [UInt64] = [0x1000, 1, 0, 0, 0, 0]
        var (part, whole) = (try observe(at: 60, in: "futex", one), try observe(at: 70, in: "futex", one))
        (part.place, part.shown) = (1, .part)
        (whole.place, whole.shown) = (2, .all)
        #expect(concluded(blocked: 75, [part, whole]).observation?.place == 2)
        #expect(concluded(blocked: 75, [whole, part]).observation?.place == 2)
        var other = try observe(at: 70, in: "futex", [0x2000, 1, 0, 0, 0, 0])
        (other.place, other.shown) = (3, .all)
        #expect(concluded(blocked: 75, [part, other]).observation?.place == 1)
    }

    /// Where /proc hides the calls, two waits in the same kernel function may be for different things.
    @Test func `another place without a call does not stand for a part of a stack`() {
        func seen(at time: UInt64, _ place: Int?, _ shown: Observation.Shown, in channel: String?) -> Observation {
            Observation(
                time: time * 1_000_000, place: place, shown: shown, activity: .blocked, waitChannel: channel)
        }
        let (part, whole) = (seen(at: 60, 1, .part, in: "futex_wait"), seen(at: 70, 2, .all, in: "futex_wait"))
        #expect(concluded(blocked: 75, [part, whole]).observation?.place == 1)
        let reading = seen(at: 60, nil, .nothing, in: "futex_wait")
        #expect(concluded(blocked: 75, [reading, whole]).observation?.place == 2)
        let other = seen(at: 70, 2, .all, in: "futex_wait_queue")
        #expect(concluded(blocked: 75, [reading, other]).observation?.place == nil)
    }

    @Test func pageFaultsDoNotHideAnotherWait() throws {
        let reading = try observe(at: 90, in: "read")
        #expect(concluded(blocked: 100, [reading], majorFaults: 50).kind == .io)
    }

    @Test func `a sleep beside page faults is no time for pages`() throws {
        let sleep = try observe(at: 900, in: "nanosleep")
        let cause = concluded(cpu: 600, blocked: 400, [sleep], majorFaults: 28_800, kernelShare: 0.97)
        #expect(cause.kind == .paging && cause.waitTime == 0)
        let fault = Observation(time: 900_000_000, activity: .faulting)
        #expect(concluded(cpu: 600, blocked: 400, [fault], majorFaults: 28_800, kernelShare: 0.97).waitTime == nil)
    }

    /// A cgroup above memory.high stops a thread outside of calls, too.
    @Test(
        arguments: [
            ("folio_wait_bit_common", nil, .certain), ("schedule_timeout_killable", "/data", .likely),
            (nil, "/data", .certain), (nil, nil, .likely),
        ] as [(String?, String?, StallReport.Confidence)])
    func `a long wait outside of calls is certainly for a page if the kernel shows one`(
        channel: String?, file: String?, confidence: StallReport.Confidence
    ) {
        let fault = Observation(time: 50_000_000, activity: .faulting, waitChannel: channel)
        var seen = evidence(blocked: 100, [fault], majorFaults: 1)
        seen.pagedFile = file
        let cause = CauseRules.conclusion(from: seen)
        #expect(cause.kind == .paging && cause.confidence == confidence)
    }

    /// The kernel counts it once for each CPU, so that other threads' CPUs may account for all of it.
    @Test func throttlingOfSeveralCPUsIsNotCertain() {
        var seen = evidence(cpu: 20, queue: 80, throttled: 80)
        #expect(CauseRules.conclusion(from: seen).confidence == .certain)
        seen.processors = 8
        #expect(CauseRules.conclusion(from: seen).confidence == .likely)
    }

    @Test func contentionOnAHostThatTakesItsCPUsIsNotCertain() {
        var seen = evidence(cpu: 20, queue: 80)
        seen.stolen = 39_000_000
        #expect(CauseRules.conclusion(from: seen).confidence == .certain)
        seen.stolen = 40_000_000
        #expect(CauseRules.conclusion(from: seen).confidence == .likely)
        #expect(CauseRules.conclusion(from: seen).kind == .cpuContention)
    }

    /// A quota of a cgroup outside of the container's namespace stops its threads, and no file in the container shows it.
    @Test func `contention is not certain where a quota may be hidden`() {
        var seen = evidence(cpu: 10, queue: 90)
        seen.seesQuotas = false
        #expect(CauseRules.conclusion(from: seen).confidence == .likely)
        #expect(CauseRules.conclusion(from: seen).kind == .cpuContention)
        seen.throttled = 90_000_000
        #expect(CauseRules.conclusion(from: seen).kind == .throttled)
        #expect(CauseRules.conclusion(from: seen).confidence == .certain)
    }

    @Test func `contention is not certain with fewer ready threads than CPUs`() {
        var seen = evidence(cpu: 10, queue: 90)
        seen.competitors = .init(own: 1, others: 0, processors: 2)
        #expect(CauseRules.conclusion(from: seen).confidence == .likely)
        seen.competitors = .init(own: 1, others: 1, processors: 2)
        #expect(CauseRules.conclusion(from: seen).confidence == .certain)
    }

    @Test func `without counted run-queue time a wait is not certain`() throws {
        var facts = evidence(blocked: 100, [try observe(at: 50, in: "nanosleep")])
        facts.countsRunQueue = false
        #expect(CauseRules.conclusion(from: facts).kind == .sleep)
        #expect(CauseRules.conclusion(from: facts).confidence == .likely)
        var computing = evidence(cpu: 100)
        computing.countsRunQueue = false
        #expect(CauseRules.conclusion(from: computing).confidence == .certain)
    }

    /// The first one stands for 65 of 100 ms.
    @Test func anObservationWeighsTheTimeThatItCovers() throws {
        let observations = [
            try observe(at: 60, in: "read"), try observe(at: 70, in: "nanosleep"), try observe(at: 80, in: "nanosleep"),
        ]
        let conclusion = concluded(blocked: 100, observations)
        #expect(conclusion.kind == .io)
        #expect(conclusion.confidence == .likely)
    }

    /// The thread waited in the same place until shortly before the second observation.
    @Test func `an observation weighs the time for which nothing changed`() throws {
        var sleep = try observe(at: 30, in: "nanosleep")
        sleep.until = 80_000_000
        let reading = try observe(at: 90, in: "read")
        let conclusion = concluded(blocked: 100, [sleep, reading])
        #expect(conclusion.kind == .sleep)
        #expect(conclusion.confidence == .certain)
    }

    @Test func thePlaceWithTheMostTimeShowsTheCause() throws {
        var (first, second) = (try observe(at: 30, in: "nanosleep"), try observe(at: 90, in: "nanosleep"))
        (first.place, first.until, second.place) = (1, 70_000_000, 2)
        let conclusion = concluded(blocked: 100, [first, second])
        #expect(conclusion.observation?.place == 1)
    }

    /// A thread stopped for the first observation may have just been resumed at the second one.
    @Test func anUnknownRestartedCallCountsLeast() throws {
        let restarted = try observe(at: 80, in: "restart_syscall")
        let observations = [try observe(at: 20, in: "nanosleep"), restarted]
        #expect(concluded(blocked: 100, observations).kind == .sleep)
        #expect(concluded(blocked: 100, [restarted]).kind == .syscall)
    }

    @Test func aWaitOutsideOfCallsIsPaging() {
        let fault = Observation(time: 50_000_000, activity: .faulting)
        #expect(concluded(blocked: 100, [fault]).kind == .paging)
    }

    @Test func aSmallerShareIsLessCertain() throws {
        let observation = try observe(at: 50, in: "read")
        #expect(concluded(cpu: 25, blocked: 75, [observation]).confidence == .certain)
        #expect(concluded(cpu: 26, blocked: 74, [observation]).confidence == .likely)
        #expect(concluded(cpu: 30, queue: 25, blocked: 45, [observation]).confidence == .possible)
    }

    @Test func manyWaitsAndOneObservationAreNotCertain() throws {
        let observation = try observe(at: 50, in: "read")
        #expect(concluded(blocked: 100, [observation], switches: 4).confidence == .likely)
    }
}
