import LinuxSupport
import StallReports
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

// The system calls that decide a cause, and the one that it names.

extension CauseRulesTests {
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
}
