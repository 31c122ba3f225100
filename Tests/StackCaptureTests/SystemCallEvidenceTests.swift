import CLinux
import Glibc
import Testing

@testable import StackCapture

@Suite struct SystemCallEvidenceTests {
    private func time(user: UInt64 = 5, system: UInt64 = 5) -> TickedCPUTime {
        TickedCPUTime(user: user, system: system)
    }

    @Test func `the last tick decides`() {
        var presence = SystemCallEvidence(time(), turn: 1)
        presence.note(time(system: 6))
        #expect(presence.mayBeInKernel)
        presence.note(time(user: 6, system: 6))
        #expect(!presence.mayBeInKernel)
        presence.note(time(user: 7, system: 7))
        #expect(presence.mayBeInKernel, "either tick may be the last one")
    }

    /// It waits for a CPU: a stop would cut the call short in which it has been for long.
    @Test func `without a tick a thread stays where it was`() {
        var presence = SystemCallEvidence(time(), turn: 1)
        presence.note(time(system: 6))
        for _ in 1...30 { presence.note(time(system: 6)) }
        #expect(presence.mayBeInKernel)
        presence.note(time(user: 6, system: 6))
        for _ in 1...30 { presence.note(time(user: 6, system: 6)) }
        #expect(!presence.mayBeInKernel)
    }

    @Test func `a thread without any tick in its turn may be in the kernel`() {
        var presence = SystemCallEvidence(time(), turn: 1)
        presence.note(time(), turn: 1)
        #expect(presence.mayBeInKernel)
        #expect(SystemCallEvidence(time(), turn: nil).mayBeInKernel)
    }

    @Test func `ticks of an earlier turn show nothing`() {
        var presence = SystemCallEvidence(time(), turn: 1)
        presence.note(time(user: 6), turn: 1)
        #expect(!presence.mayBeInKernel)
        presence.note(time(user: 7), turn: 2)
        #expect(presence.mayBeInKernel, "nothing shows where the tick of turn 2 was")
        presence.note(time(user: 8), turn: 2)
        #expect(!presence.mayBeInKernel)
    }

    @Test func `a thread that was seen outside of calls is not in one`() {
        var presence = SystemCallEvidence(time(), turn: nil)
        presence.noteUserMode()
        #expect(!presence.mayBeInKernel)
        presence.note(time(system: 6))
        #expect(presence.mayBeInKernel)
    }
}

@Suite struct TickedCPUTimeTests {
    @Test func `a computing thread gets ticks in user mode`() throws {
        let thread = clinux_gettid()
        let before = try #require(TickedCPUTime(thread: thread))
        // By its own CPU time, so that a busy machine does not matter: 100 ms are 10 ticks of the slowest kernel.
        var used = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)
        let until = used.tv_sec * 1_000 + used.tv_nsec / 1_000_000 + 100
        while used.tv_sec * 1_000 + used.tv_nsec / 1_000_000 < until {
            for _ in 0..<200 { _ = Int.random(in: 0..<9) }
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)
        }
        let after = try #require(TickedCPUTime(thread: thread))
        #expect(after.user > before.user)
        #expect(after.system >= before.system)
    }

    @Test func `a thread that does not exist has no CPU time`() {
        #expect(TickedCPUTime(thread: 0x3fff_fff0) == nil)
    }
}
