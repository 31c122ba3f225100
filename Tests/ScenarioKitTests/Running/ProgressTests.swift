import Synchronization
import StallWatch
import Testing

@testable import ScenarioKit

@Suite struct ProgressTests {
    private let scenario = Scenario.stalling(
        "spin", "a timer computes", times: 2, .main(.timer, in: "spin()")
    ) { $0.stall }
    private let outcome = Outcome.stub(
        "spin", in: "spin()", injected: 500.04,
        [ReportedStall(file: "a.json", loop: "main", milliseconds: 500.16, function: "spin()")])

    /// Returns what a progress of this style writes about the second of twelve scenarios.
    private func written(_ style: Progress.Style, _ outcome: Outcome) throws -> [String] {
        let written = Written()
        let progress = Progress(style: style, total: 12) { text in written.texts.withLock { $0.append(text) } }
        try progress.begin(scenario, 1, stall: .milliseconds(500))
        try progress.finish(outcome, 1)
        return written.texts.withLock { $0 }
    }

    private final class Written: Sendable {
        let texts = Mutex<[String]>([])
    }

    @Test func aPipeGetsALineWhenAScenarioEnds() throws {
        #expect(try written(.plain, outcome) == ["[ 2/12] spin: ok, injected 500.0 ms, reported 500.2 ms in spin()\n"])
    }

    @Test func aTerminalGetsALineThatChanges() throws {
        #expect(
            try written(.inPlace(columns: 80), outcome) == [
                "\r\u{1b}[K[ 2/12] spin: a timer computes, 500 ms",
                "\r\u{1b}[K[ 2/12] spin: ok, injected 500.0 ms, reported 500.2 ms in spin()\n",
            ]
        )
    }

    @Test(arguments: [(20, "[ 2/12] spin: a tim"), (1, ""), (0, "")])
    func aLineThatChangesFitsIntoItsRow(columns: Int, text: String) throws {
        #expect(try written(.inPlace(columns: columns), outcome).first == Progress.rewind + text)
    }

    @Test func quietWritesNothing() throws {
        #expect(try written(.silent, outcome).isEmpty)
    }

    @Test func anAbandonedLineEnds() throws {
        for (style, text) in [(Progress.Style.inPlace(columns: 80), "\n"), (.plain, ""), (.silent, "")] {
            let written = Written()
            try Progress(style: style, total: 12) { text in written.texts.withLock { $0.append(text) } }.abandon()
            #expect(written.texts.withLock { $0.joined() } == text)
        }
    }

    @Test func aRepetitionIsWrittenWithItsReason() throws {
        let written = Written()
        let progress = Progress(style: .plain, total: 12) { text in written.texts.withLock { $0.append(text) } }
        try progress.repeats(outcome, 1)
        let lines = written.texts.withLock { $0 }
        #expect(
            lines == [
                "[ 2/12] spin: ok, injected 500.0 ms, reported 500.2 ms in spin(); again, because the CPUs were taken away\n"
            ]
        )
    }

    @Test func aMissingReportIsWritten() throws {
        let missed = Outcome.stub("spin", in: "spin()")
        #expect(try written(.plain, missed) == ["[ 2/12] spin: missed, injected 500.0 ms, no report\n"])
    }

    @Test func `the reason of an unavailable scenario is written`() throws {
        let outcome = Outcome.stub("glib", in: "sleep()", injected: nil, unavailable: "there is no library")
        #expect(try written(.plain, outcome) == ["[ 2/12] glib: not-available, there is no library\n"])
    }

    @Test func aFailedWriteIsThrown() {
        let failure = ScenariosFailure(.inputOutput, "the pipe is closed")
        let progress = Progress(style: .plain, total: 12) { _ throws(ScenariosFailure) in throw failure }
        #expect(throws: failure) { try progress.finish(outcome, 1) }
    }
}
