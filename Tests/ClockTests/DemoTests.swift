import Foundation
import TestSupport
import Testing

@testable import StallReports

/// The demo as a newcomer runs it.
@Suite struct DemoTests {
    /// One of each kind; `make demo` runs them all.
    @Test(.timeLimit(.minutes(20))) func everyKindOfStallIsReportedAndPrinted() throws {
        let directory = try TemporaryDirectory()
        let folder = directory.path("stalls")
        let stalls = ["cpu", "task-pool", "saturation", "spinning", "mode-starvation", "overdue"]
        let demo = try Command(
            program: Command.product("stallwatch-demo"),
            arguments: ["--output", folder] + stalls.flatMap { ["--stall", $0] }
        ).run()
        #expect(demo.status == 0, "\(demo.text)")
        let lines = demo.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let reports = try lines.filter { $0.hasPrefix(folder) }.map { file in
            try StallReport(jsonData: Array(Data(contentsOf: URL(fileURLWithPath: file))))
        }
        #expect(reports.count == stalls.count)
        for report in reports { #expect(demo.output.contains(report.summary)) }
        let kinds = Set(reports.map(\.kind.rawValue))
        #expect(kinds == ["stall", "starvation", "saturation", "spinning", "modeStarvation", "overdue"])
    }

    @Test func fifteenStallsAreListed() throws {
        let demo = try Command(program: Command.product("stallwatch-demo"), arguments: ["--list"]).succeed()
        #expect(demo.split(separator: "\n").count == 15)
    }

    @Test func anUnknownStallIsAUsageError() throws {
        let demo = try Command(program: Command.product("stallwatch-demo"), arguments: ["--stall", "nothing"]).run()
        #expect(demo.status == 64 && demo.text.contains("There is no stall 'nothing': name one of cpu, "), "\(demo)")
    }
}
