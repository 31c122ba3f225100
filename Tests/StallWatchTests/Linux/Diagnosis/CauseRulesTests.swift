import LinuxSupport
import StallReports
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

private func evidence(
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

private func concluded(
    cpu: UInt64 = 0, queue: UInt64 = 0, blocked: UInt64 = 0, _ observations: [Observation] = [],
    majorFaults: UInt64 = 0, kernelShare: Double? = nil, throttled: UInt64 = 0, switches: UInt64 = 1
) -> Cause {
    CauseRules.conclusion(
        from: evidence(
            cpu: cpu, queue: queue, blocked: blocked, observations, majorFaults: majorFaults, kernelShare: kernelShare,
            throttled: throttled, switches: switches))
}

/// Creates an observation of a thread in the system call of that name on this architecture.
private func observe(at time: UInt64, in name: String, _ arguments: [UInt64] = [0, 1, 0, 0, 0, 0]) throws -> Observation
{
    let number = try #require((0..<500).first { SystemCallNames.current.name($0) == name })
    return Observation(
        time: time * 1_000_000,
        activity: .waiting(SystemCall(number: number, arguments: arguments, stackPointer: 0, programCounter: 0))
    )
}

/// Creates an observation of a running thread, inside the system call of that name if there is one.
private func running(at time: UInt64, in name: String?) throws -> Observation {
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

    /// Three locks in a row, each for a third of the time, are not the last one's owner's fault.
    @Test func `the time of one wait is not that of others in the same function`() throws {
        func wait(at time: UInt64, for address: UInt64, of owner: Int32) throws -> Observation {
            var wait = try observe(at: time, in: "futex", [address, 0, 2, 0, 0, 0])
            wait.place = 1
            wait.lock = LockChain(
                lock: AwaitedLock(kind: .pthreadMutex, address: address, ownership: .thread(owner)),
                owners: [.init(thread: ThreadIdentity(id: owner, name: nil), isRunning: false)])
            return wait
        }
        let waits = [try wait(at: 50, for: 8, of: 7), try wait(at: 150, for: 16, of: 9)]
        let cause = concluded(blocked: 200, waits)
        #expect(cause.kind == .lock && cause.confidence == .certain)
        #expect(cause.waitTime == 100_000_000)
        // The lock went from one owner to the next one.
        #expect(concluded(blocked: 200, [waits[0], try wait(at: 150, for: 8, of: 9)]).waitTime == 100_000_000)
        #expect(concluded(blocked: 200, [waits[0], try wait(at: 150, for: 8, of: 7)]).waitTime == nil)
        #expect(concluded(blocked: 200, [waits[0]]).waitTime == nil)
        // Four fifths are not all of it.
        var last = try wait(at: 200, for: 16, of: 9)
        last.place = 2
        #expect(concluded(blocked: 200, [try wait(at: 120, for: 8, of: 7), last]).waitTime == 160_000_000)
    }

    @Test(
        arguments: [
            ("read", "pipe:[1]", "pipe:[2]", false), ("read", "/tmp/a", "/tmp/a (deleted)", true),
            ("clock_nanosleep", "400 ms", "350 ms", false), ("wait4", "process 7 \"sh\"", "process 7 \"ls\"", true),
            ("read", "/tmp/a", nil, true),
        ] as [(String, String, String?, Bool)])
    func `calls are alike if their targets may be`(name: String, first: String, second: String?, isAlike: Bool) throws {
        var (one, two) = (try observe(at: 1, in: name), try observe(at: 2, in: name))
        one.call = .init(number: 0, name: name, target: first)
        two.call = .init(number: 0, name: name, target: second)
        #expect(one.isAlike(two) == isAlike && two.isAlike(one) == isAlike)
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

    @Test func `the call with most of the time in the kernel is named`() throws {
        let mixed = [try running(at: 50, in: "read"), try running(at: 70, in: "write"), try running(at: 90, in: nil)]
        let conclusion = concluded(cpu: 100, mixed, kernelShare: 0.9)
        #expect(conclusion.kind == .cpu)
        #expect(conclusion.observation?.call?.name == "read")
        #expect(conclusion.observation?.call?.target == "/data/read")
        #expect(conclusion.callShare == 0.6)
        let rare = [try running(at: 20, in: "read"), try running(at: 60, in: nil)]
        #expect(concluded(cpu: 100, rare, kernelShare: 0.9).observation?.call == nil)
        // None has half of the time, and the last one is not named for it.
        let three = [try running(at: 30, in: "read"), try running(at: 50, in: nil), try running(at: 70, in: "write")]
        #expect(concluded(cpu: 100, three, kernelShare: 0.9).observation?.call == nil)
        // A stop meets a thread that has copied page tables for fork(2) in its next call.
        #expect(concluded(cpu: 100, [try running(at: 90, in: "futex")], kernelShare: 0.9).observation?.call == nil)
        let trying = [try running(at: 30, in: "futex"), try running(at: 90, in: "futex")]
        #expect(concluded(cpu: 100, trying, kernelShare: 0.9).observation?.call?.name == "futex")
    }

    @Test func `the other end of a pipe stays known`() throws {
        var (found, later) = (try observe(at: 50, in: "read"), try observe(at: 90, in: "read"))
        (found.call, later.call) = (try running(at: 0, in: "read").call, try running(at: 0, in: "read").call)
        found.call?.peers = [.init(role: .writer, pid: 7)]
        #expect(concluded(blocked: 100, [found, later]).observation?.call?.peers?.count == 1)
        later.call?.peers = [.init(role: .writer, pid: 8)]
        #expect(concluded(blocked: 100, [found, later]).observation?.call?.peers?.first?.pid == 8)
    }

    @Test func `a thread that computes in another call than it waits in does not compute in it`() throws {
        var waiting = try observe(at: 70, in: "read")
        waiting.call = try running(at: 0, in: "read").call
        let cause = concluded(cpu: 40, blocked: 60, [try running(at: 20, in: "munmap"), waiting], kernelShare: 0.9)
        #expect(cause.kind == .io && cause.observation?.call?.name == "read")
        #expect(cause.callShare == nil)
    }

    /// Measured: a loop of pwrite(2) and fsync(2), of whose CPU time fsync has most, partly just before and after the call.
    @Test func `a call's libc function counts as the call`() throws {
        func stopped(at time: UInt64) throws -> Observation {
            var observation = try running(at: time, in: nil)
            observation.function = "fsync"
            return observation
        }
        let observations = [
            try stopped(at: 20), try running(at: 40, in: "fsync"), try running(at: 60, in: "pwrite64"),
            try stopped(at: 80),
        ]
        let flushing = evidence(cpu: 289, queue: 26, blocked: 185, observations, kernelShare: 0.909)
        #expect(CauseRules.conclusion(from: flushing).kind == .io)
        #expect(CauseRules.conclusion(from: flushing).callShare == 0.96)
        let without = evidence(cpu: 289, queue: 26, blocked: 185, [try stopped(at: 20)], kernelShare: 0.909)
        #expect(CauseRules.conclusion(from: without).kind == .cpu, "no sample met the call itself")
    }

    /// Measured: fsync(2) of a file on a disk in memory waits for half of the time and works in the kernel for the rest.
    @Test func `waiting and working in one call count as I/O together`() throws {
        var waiting = try observe(at: 90, in: "fsync")
        waiting.call = try running(at: 0, in: "fsync").call
        let observations = [try running(at: 30, in: "fsync"), waiting]
        let flushing = evidence(cpu: 237, queue: 50, blocked: 217, observations, kernelShare: 0.889)
        #expect(CauseRules.conclusion(from: flushing).kind == .io)
        #expect(CauseRules.conclusion(from: flushing).confidence == .certain)
        // Beside other programs, and without ticks that show the kernel's share.
        let contended = evidence(cpu: 220, queue: 237, blocked: 48, [try running(at: 30, in: "fsync")])
        #expect(CauseRules.conclusion(from: contended).kind == .io)
        #expect(CauseRules.conclusion(from: contended).confidence == .likely)
        #expect(concluded(cpu: 100, queue: 237, blocked: 48, observations).kind == .cpuContention)
        // Nearly all of it copies from memory.
        var reading = try observe(at: 90, in: "read")
        reading.call = try running(at: 0, in: "read").call
        let copying = evidence(cpu: 237, blocked: 60, [try running(at: 30, in: "read"), reading], kernelShare: 0.9)
        #expect(CauseRules.conclusion(from: copying).kind == .cpu)
        // The time in the kernel is another call's.
        let other = [try running(at: 30, in: "getrandom"), waiting]
        #expect(concluded(cpu: 237, blocked: 217, other, kernelShare: 0.889).kind == .cpu)
    }

    @Test func `a returned call's arguments are not followed`() throws {
        let number = try #require(SystemCallNames.current.number(of: "munmap"))
        let call = CapturedCall(
            number: number, arguments: [0, 0, 0, 0, 0, 0], target: "/dev/null", hasReturned: true)
        #expect(DescribedCall(call, function: nil, memory: GuardedMemory())?.target == nil)
        let unknown = CapturedCall(number: nil, arguments: [0, 0, 0, 0, 0, 0], hasReturned: true)
        #expect(DescribedCall(unknown, function: nil, memory: GuardedMemory()) == nil)
        #expect(DescribedCall(unknown, function: "munmap", memory: GuardedMemory())?.number == number)
    }

    /// From glibc 2.41 on, the instruction of a call that can be cancelled does not show the call's number.
    @Test(arguments: [("pwrite", "pwrite64"), ("open", "openat"), ("recv", "recvfrom"), ("fsync", "fsync")])
    func `a function of libc shows the call that it makes`(function: String, name: String) {
        let unknown = CapturedCall(number: nil, arguments: [0, 0, 0, 0, 0, 0], hasReturned: true)
        #expect(DescribedCall(unknown, function: function, memory: GuardedMemory())?.name == name)
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

    private static let circle = LockChain(
        lock: AwaitedLock(kind: .once, hasTimeout: true, ownership: .thread(7)), isDeadlock: true)

    /// A lock with a time limit that ran out, after which the turn computed.
    @Test func aDeadlockThatEndedIsNotTheCauseOfTheRest() throws {
        var waiting = try observe(at: 20, in: "futex")
        waiting.lock = Self.circle
        let computing = try [60, 120, 180].map { try running(at: $0, in: nil) }
        #expect(concluded(cpu: 160, blocked: 40, [waiting] + computing).kind == .cpu)
        #expect(concluded(blocked: 40, [waiting]).kind == .deadlock)
        waiting.lock?.lock.hasTimeout = false
        #expect(concluded(cpu: 160, blocked: 40, [waiting] + computing).kind == .cpu)
    }

    /// Another thread let go of the lock: a mutex that stands for a semaphore, or the end of a canceled thread.
    @Test func `a circle that another thread has broken is no deadlock`() throws {
        var waiting = try observe(at: 50, in: "futex")
        waiting.lock = LockChain(
            lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .thread(2)), isDeadlock: true)
        var seen = evidence(blocked: 100, [waiting])
        #expect(CauseRules.conclusion(from: seen).kind == .deadlock)
        seen.goesOn = true
        let cause = CauseRules.conclusion(from: seen)
        #expect(cause.kind == .lock && cause.observation?.lock?.isDeadlock == false)
        // One with a time limit ends by itself.
        seen.observations[0].lock?.lock.hasTimeout = true
        #expect(CauseRules.conclusion(from: seen).kind == .deadlock)
    }

    @Test(arguments: [
        ("futex", Cause.Kind.lock), ("flock", .lock), ("nanosleep", .sleep), ("clock_nanosleep", .sleep), ("read", .io),
        ("fsync", .io), ("connect", .io), ("ppoll", .io), ("wait4", .syscall), ("rt_sigtimedwait", .syscall),
    ])
    func aCallsPurposeDeterminesTheCause(name: String, kind: Cause.Kind) throws {
        let conclusion = concluded(blocked: 100, [try observe(at: 50, in: name)])
        #expect(conclusion.kind == kind)
        #expect(conclusion.confidence == .certain)
    }

    /// Where /proc hides the call, the kernel function that waits stands for it.
    @Test(arguments: [
        ("futex_do_wait", Cause.Kind.lock), ("hrtimer_nanosleep", .sleep), ("anon_pipe_read", .io), ("ep_poll", .io),
        ("do_wait.constprop.0", .syscall), ("flock_lock_inode_wait", .lock),
        // It waits for a time or for data, for a call or for a page fault.
        ("poll_schedule_timeout", .unknown), ("folio_wait_bit_common", .unknown),
    ])
    func `the wait channel determines the cause of a hidden call`(channel: String, kind: Cause.Kind) {
        let observation = Observation(time: 50_000_000, activity: .blocked, waitChannel: channel)
        let conclusion = concluded(blocked: 100, [observation])
        #expect(conclusion.kind == kind)
        #expect(conclusion.confidence != .certain)
        let nothing = Observation(time: 50_000_000, activity: .blocked)
        #expect(concluded(blocked: 100, [nothing]).kind == .unknown)
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

    @Test func `a stopped thread shows the call that it was blocked in`() throws {
        let number = try #require(SystemCallNames.current.number(of: "futex"))
        var stack = CapturedStack.stub([0x10, 0x20], method: .ptrace)
        #expect(SystemCall(ofStopped: stack) == nil)
        stack.call = CapturedCall(number: number, arguments: [7, 128, 2, 0, 0, 0], hasReturned: true)
        let call = try #require(SystemCall(ofStopped: stack))
        #expect(call.name == "futex")
        #expect(call.argument(0) == 7)
        #expect(call.programCounter == 0x10)
        // A running thread has left its call.
        stack.threadState = .running
        #expect(SystemCall(ofStopped: stack) == nil)
    }

    @Test func pollingNothingIsSleeping() throws {
        let observation = try observe(at: 50, in: "ppoll", [0, 0, 0x1000, 0, 0, 0])
        #expect(concluded(blocked: 100, [observation]).kind == .sleep)
    }

    @Test(
        arguments: [
            ([0, 0, 0, 0, 0x1000], .sleep), ([1_024, 0, 0, 0, 0x1000], .sleep), ([0, 0x1000, 0, 0, 0x1000], .sleep),
            ([1_024, 0, 0, 0x1000, 0x1000], .io), ([4, 0x1000, 0, 0, 0], .io),
        ] as [([UInt64], Cause.Kind)])
    func `a select without a set is a sleep`(arguments: [UInt64], purpose: Cause.Kind) throws {
        let number = try #require(SystemCallNames.current.number(of: "pselect6"))
        let call = SystemCall(number: number, arguments: arguments, stackPointer: 0, programCounter: 0)
        #expect(call.purpose == purpose)
    }

    /// Without a time limit, too, only a signal ends the wait.
    @Test(
        arguments: [
            ("ppoll", [0, 0, 0], true), ("ppoll", [0, 0, 0x1000], false), ("ppoll", [0x1000, 1, 0], false),
            ("pselect6", [0, 0, 0, 0, 0], true), ("pselect6", [0, 0, 0, 0, 0x1000], false),
            ("pselect6", [4, 0x1000, 0, 0, 0], false), ("pselect6", [1_024, 0, 0, 0, 0], true),
            ("rt_sigsuspend", [0x1000, 8], true),
            ("rt_sigtimedwait", [0x1000, 0, 0, 8], true), ("rt_sigtimedwait", [0x1000, 0, 0x1000, 8], false),
        ] as [(String, [UInt64], Bool)])
    func `a call without anything else waits for a signal`(name: String, arguments: [UInt64], waits: Bool) throws {
        let call = SystemCall(
            number: try #require(SystemCallNames.current.number(of: name)),
            arguments: arguments + [0, 0, 0, 0, 0], stackPointer: 0, programCounter: 0)
        #expect(call.waitsForSignal == waits && (call.purpose == .syscall) == (waits || name == "rt_sigtimedwait"))
        #expect((call.target(memory: GuardedMemory()) == "a signal") == waits)
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

    /// Many short waits: no observation shows one, but all show the function around them.
    @Test(
        arguments: [
            ("fsync", Cause.Kind.io), ("pwrite", .io), ("read", .io), ("memcpy", .unknown), (nil, .unknown),
        ] as [(String?, Cause.Kind)])
    func `without an observed wait, the libc function decides`(function: String?, kind: Cause.Kind) {
        let observation = Observation(time: 50_000_000, activity: .running, function: function)
        let conclusion = concluded(cpu: 30, queue: 20, blocked: 50, [observation])
        #expect(conclusion.kind == kind)
        #expect(conclusion.confidence == .possible)
        #expect(concluded(cpu: 60, blocked: 40, [observation]).kind == .cpu)
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

    @Test func aLockWithoutAConfirmedOwnerIsNotCertain() throws {
        var observation = try observe(at: 50, in: "futex")
        observation.lock = LockChain(
            lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .unknown("it moved")))
        #expect(concluded(blocked: 100, [observation]).confidence == .likely)
    }

    /// The last observation may be of a thread that was woken and has not run yet.
    @Test func `a lock that was seen stays known`() throws {
        var observation = try observe(at: 50, in: "futex")
        observation.lock = LockChain(lock: AwaitedLock(kind: .dispatchSemaphore, address: 8, ownership: .none))
        let woken = try observe(at: 90, in: "futex")
        func lock() -> StallReport.Lock? {
            StallReport.Cause(concluded(blocked: 100, [observation, woken])) { _, _ in 0 }.lock
        }
        #expect(lock()?.kind == .dispatchSemaphore && lock()?.hasTimeLimit == nil)
        observation.lock?.lock.hasTimeout = true
        #expect(lock()?.hasTimeLimit == true)
    }

    /// It was captured when it was about to wait, and its stack could not be captured later.
    @Test func `the call that an owner waits in tells more than where it ran before`() throws {
        func holding(at time: UInt64, _ stack: CapturedStack?, in call: String?) throws -> Observation {
            let wait = try call.flatMap { try observe(at: time, in: $0).activity.call }
            var observation = try observe(at: time, in: "futex")
            observation.lock = LockChain(
                lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .thread(2)),
                owners: [
                    LockChain.Owner(
                        thread: ThreadIdentity(id: 2, name: "holder"), stack: stack,
                        systemCall: wait.map { DescribedCall($0, memory: nil) }, isRunning: call == nil)
                ])
            return observation
        }
        func owner(_ observations: Observation...) -> LockChain.Owner? {
            concluded(blocked: 100, observations).observation?.lock?.owners.first
        }
        let running = try holding(at: 20, .stub([0x1000]), in: nil)
        #expect(owner(running, try holding(at: 90, nil, in: "nanosleep"))?.isRunning == false)
        // What is known of both is kept.
        let waiting = try holding(at: 20, .stub([0x1000]), in: "nanosleep")
        #expect(owner(waiting, try holding(at: 90, nil, in: "nanosleep"))?.stack != nil)
        // An owner that runs now is not said to wait, although of the wait more was known.
        #expect(owner(waiting, try holding(at: 90, .stub([0x2000]), in: nil))?.isRunning == true)
    }

    @Test func aCycleOfOwnersIsADeadlock() throws {
        var observation = try observe(at: 50, in: "futex")
        observation.lock = LockChain(
            lock: AwaitedLock(kind: .pthreadMutex, address: 8, ownership: .thread(2)), isDeadlock: true)
        #expect(concluded(blocked: 100, [observation]).kind == .deadlock)
        #expect(concluded(blocked: 100, [observation]).confidence == .certain)
        observation.lock?.lock.hasTimeout = true
        #expect(concluded(blocked: 100, [observation]).confidence == .likely)
    }
}
