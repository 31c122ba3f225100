import StallReports
import StallWatch
import TestSupport
import Testing
import TextOutput

@testable import stallwatch_demo

/// What the demo prints about freezes, at two widths.
@Suite struct DemoScreenTests {
    private func report(_ fixture: ReportFixture) throws -> StallReport { try StallReport(jsonData: fixture.bytes) }

    @Test(arguments: [80, 120]) func `the demo's screen`(width: Int) throws {
        let screen = Screen(directory: "stalls", width: width)
        let long = "NoteStore.saveAllNotesOfTheDay(_:into:whileTheUserTypes:)"
        let ended = try [
            report(ReportFixture(number: 1, milliseconds: 1_300)),
            report(ReportFixture(number: 2, milliseconds: 407, function: long, cause: "cpu")),
            report(ReportFixture(number: 3, kind: "saturation", milliseconds: 2_000, cause: "cpu")),
        ]
        let began = try ["lock", "cpu", "continuation", "unknown"].map {
            try report(ReportFixture(state: "ongoing", function: long, cause: $0))
        }
        let lines =
            began.map { screen.lines(about: .began($0), after: .milliseconds(800)) }
            + ended.map { screen.lines(about: .ended($0), after: .seconds(12.34)) }
        let text = lines.joined() + screen.end(of: ended, after: .seconds(10)) + "\n"
        #expect(text.split(separator: "\n").allSatisfy { String($0).columns <= width }, "\(text)")
        try ExpectedTexts.screens.expect(text, "demo-\(width)")
    }

    @Test func `a freeze that ended at once begins without a line`() throws {
        let screen = Screen(directory: "stalls", width: 80)
        #expect(screen.lines(about: .began(try report(ReportFixture())), after: .seconds(1)) == "")
        #expect(screen.end(of: [], after: .seconds(1)).contains("0 freezes, 0.0 s of 1 s. "))
    }
}
