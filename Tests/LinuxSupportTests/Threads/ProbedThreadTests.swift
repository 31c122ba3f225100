import Glibc
import Testing

@testable import LinuxSupport

@Suite struct ProbedThreadTests {
    @Test func `the thread waits or computes`() throws {
        func state(_ thread: Int32) -> String? {
            readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcessStat.init)?.state
        }
        #expect(try ProbedThread.run(isWaiting: true, state) == "S")
        #expect(try ProbedThread.run(isWaiting: false, state) == "R")
    }

    @Test func `only the given signal is not blocked`() throws {
        let blocked = try ProbedThread.run(isWaiting: true, signal: SIGPROF) { thread in
            var status = readSmallFile("/proc/self/task/\(thread)/status").map(ByteCursor.init)
            let isThere = status?.skip(pastLinePrefix: "SigBlk:") ?? false
            return isThere ? status?.word() : nil
        }
        let mask = try #require(blocked.flatMap { UInt64($0, radix: 16) })
        #expect(mask >> UInt64(SIGPROF - 1) & 1 == 0)
        #expect(mask >> UInt64(SIGUSR1 - 1) & 1 == 1)
    }
}
