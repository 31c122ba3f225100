import CLinux
import Glibc
import Testing

@testable import StackCapture

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
