import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct ThreadFileTests {
    @Test(arguments: [
        (ThreadFile.syscall, "running\n", true), (.syscall, "", false), (.wchan, "futex_wait_queue", true),
        (.wchan, "0", false), (.schedstat, "12 3 4\n", true), (.schedstat, "0 0 0\n", false),
        (.schedstat, "1\n", false),
        (.status, "Name:\tx\nvoluntary_ctxt_switches:\t5\n", true), (.status, "Name:\tx\n", false),
        (.stat, "1 (x) S 1\n", false), (.stack, "[<0>] futex_wait+0x1/0x2\n", true), (.stack, "", false),
    ])
    func `a file shows its value or not`(file: ThreadFile, text: String, isShown: Bool) {
        #expect(file.isShown(text) == isShown)
    }

    @Test func `files of a waiting thread are read`() throws {
        try ProbedThread.run(isWaiting: true) { thread in
            for file in [ThreadFile.schedstat, .stat, .status] {
                #expect(file.read(in: "/proc/self/task/\(thread)") == .shown)
            }
        }
    }

    @Test func `a missing file has an error number`() throws {
        let directory = try TemporaryDirectory()
        #expect(ThreadFile.wchan.read(in: directory.path) == .missing(errno: ENOENT))
        try directory.write("wchan", "0")
        #expect(ThreadFile.wchan.read(in: directory.path) == .hidden)
    }
}

@Suite struct ProbedThreadTests {
    @Test func `the thread waits or computes`() throws {
        func state(_ thread: Int32) -> String? {
            readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcessStat.init)?.state
        }
        #expect(try ProbedThread.run(isWaiting: true, state) == "S")
        #expect(try ProbedThread.run(isWaiting: false, state) == "R")
    }

    @Test func `the given signal is not blocked`() throws {
        let blocked = try ProbedThread.run(isWaiting: true, signal: SIGUSR2) { blockedSignals(of: "self/task/\($0)") }
        #expect(blocked?.contains(SIGUSR2) == false)
        #expect(blocked?.contains(SIGUSR1) == true)
    }
}

@Suite struct SystemTrialTests {
    /// A reference for the trials: what the calls do in this process.
    @Test func `own memory can be read`() {
        #expect(SystemTrial.readMemory.refusal() == nil)
        #expect(SystemTrial.signal.refusal() == nil)
    }
}
