import Glibc
import Testing

@testable import LinuxSupport

@Suite struct ProbedThreadTests {
    @Test func `the thread waits or computes`() throws {
        func state(_ thread: Int32) -> String? {
            readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcStat.init)?.letter
        }
        #expect(try ProbedThread.run(isWaiting: true, state) == "S")
        #expect(try ProbedThread.run(isWaiting: false, state) == "R")
    }

    @Test(arguments: [true, false])
    func `the thread is gone afterwards`(isWaiting: Bool) throws {
        let thread = try ProbedThread.run(isWaiting: isWaiting) { $0 }
        // It is joined, but the kernel removes its entry in /proc a moment later.
        let deadline = monotonicNow() + 30_000_000_000
        while ThreadIdentity.all().contains(thread), monotonicNow() < deadline { nap() }
        #expect(!ThreadIdentity.all().contains(thread))
    }

    @Test func `the given signal is not blocked`() throws {
        let blocked = try ProbedThread.run(isWaiting: true, signal: SIGUSR2) { blockedSignals(of: "self/task/\($0)") }
        #expect(blocked?.contains(SIGUSR2) == false)
        #expect(blocked?.contains(SIGUSR1) == true)
    }
}
