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
}
