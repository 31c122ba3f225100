import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct ProcStatTests {
    @Test func `a command name may have any character`() {
        let stat = ProcStat("4700 (a) R 1) S 1 2 3 4 5 6 11 12 13 14 15 16 17 18 19 20 5 0 4242 23\n")
        #expect(stat?.letter == "S")
        #expect(stat?.parent == 1)
        #expect(stat?.minorFaults == 11)
        #expect(stat?.majorFaults == 13)
        #expect(stat?.userTicks == 15)
        #expect(stat?.systemTicks == 16)
        #expect(stat?.nice == 20)
        #expect(stat?.threads == 5)
        #expect(stat?.startTicks == 4242)
        #expect(ProcStat("nonsense") == nil)
        #expect(ProcStat("4700 (a) S 1 2 3 4 5 6 11 12 13 14 15 16 17 18 19 20 5 0 x 23") == nil)
    }

    @Test func `the start time is the twenty-second field`() {
        let fields = (3...52).map { $0 == 3 ? "R" : String($0) }.joined(separator: " ")
        let stat = ProcStat("4700 (a) \(fields)\n")
        #expect(stat?.startTicks == 22)
        #expect(stat?.threads == 20)
        #expect(stat?.exitSignal == 38)
    }

    @Test func `a thread that is not the first one has no exit signal and a processor`() {
        let fields = (3...52).map { $0 == 3 ? "R" : $0 == 38 ? "-1" : String($0) }.joined(separator: " ")
        let stat = ProcStat("4700 (a) \(fields)\n")
        #expect(stat?.exitSignal == -1)
    }

    @Test func `switches are counted where the system shows them`() {
        let whole = "Name:\tx\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"
        let counts = SwitchCounts(ByteCursor(whole))
        #expect(counts?.state == UInt8(ascii: "S"))
        #expect(counts?.voluntary == 5)
        #expect(counts?.involuntary == 7)
        #expect(SwitchCounts(ByteCursor("Name:\tx\n")) == nil)
        #expect(SchedulingTimes(ByteCursor("12 3 4\n"))?.runQueue == 3)
        #expect(SchedulingTimes(ByteCursor("12 3\n")) == nil)
    }
}

@Suite struct ThreadProcTests {
    @Test func `the calling thread's own files are read`() throws {
        let files = try #require(ThreadProc.ofThisThread([.schedstat, .stat]))
        #expect(files.stat?.letter == "R")
        #expect(files.text(.status) == nil, "it is not open")
    }

    @Test func `/proc shows this process`() {
        #expect(showsOwnThreads)
        #expect(!isProcForeign)
    }
}

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
