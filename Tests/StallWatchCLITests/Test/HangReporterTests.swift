import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatchCLI

@Suite struct HangReporterTests {
    private static let second: UInt64 = 1_000_000_000
    private static let limit = 30 * second

    private func process(_ id: Int32, startedAt seconds: UInt64, _ state: String = "S") -> RunningProcess {
        let ticks = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
        return RunningProcess(id: id, parent: 1, command: "x", state: state, startTicks: seconds * ticks)
    }

    /// Whether the run is a hang, 100 s after the start of the system.
    private func isHang(_ offering: [RunningProcess], _ others: [RunningProcess], _ lines: [String]) -> Bool {
        var progress = TestRun.Progress(clock: HangClock(limit: Self.limit, now: 0))
        for line in lines { progress.tests.read(line, at: 0) }
        return HangReporter.isHang(offering, among: others + offering, progress, at: 100 * Self.second)
    }

    private static let began = "◇ Test load() started."
    private static let ended = "✔ Test load() passed after 0.001 seconds."

    @Test func `a build before, between or after the tests is no hang`() {
        let compiler = process(7, startedAt: 10, "R")
        #expect(!isHang([], [compiler], []))
        #expect(!isHang([], [process(7, startedAt: 10)], []))
        #expect(!isHang([], [compiler], [Self.began, Self.ended]))
        #expect(!isHang([], [compiler], [Self.began, "error: Exited with unexpected signal code 4"]))
    }

    @Test func `a test process without a line is a hang once it has run for the limit`() {
        #expect(!isHang([process(8, startedAt: 80)], [], []))
        #expect(!isHang([process(8, startedAt: 80)], [], [Self.began, Self.ended]))
        #expect(isHang([process(8, startedAt: 70)], [], []))
        #expect(isHang([process(8, startedAt: 60), process(9, startedAt: 80)], [], []))
    }

    @Test func `a test that runs is a hang without an answer, too`() {
        #expect(isHang([], [process(7, startedAt: 10, "R")], [Self.began]))
    }

    @Test func `a folder that cannot be written is not used`() throws {
        let scratch = try TemporaryDirectory()
        let new = scratch.path + "/hangs/hang-1-7"
        #expect(HangReporter.folder(new, orElse: "/other") == new)
        let file = scratch.path + "/file"
        close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        #expect(HangReporter.folder(file + "/hang-1-7", orElse: "/other") == "/other")
    }

    @Test func `a process that has ended is not waited for`() throws {
        let scratch = try TemporaryDirectory()
        let fifo = scratch.path + "/ask"
        try #require(mkfifo(fifo, 0o600) == 0)
        let process = open(fifo, O_RDWR | O_CLOEXEC)
        let tool = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(tool) }
        #expect(HangReporter.hasReader(tool))
        close(process)
        // A program that another test starts may have the descriptor for a moment.
        #expect(eventually { !HangReporter.hasReader(tool) })
    }

    /// What a test has left behind keeps the pipe open that the command reads.
    @Test func `a command that waits after its tests is a hang`() {
        #expect(isHang([], [process(7, startedAt: 10)], [Self.began, Self.ended]))
    }
}
