import Foundation
import TestSupport
import Testing

@testable import StallReports

/// The demo as a newcomer runs it.
@Suite struct DemoTests {
    @Test(.timeLimit(.minutes(20))) func everyStallIsReportedAndPrinted() throws {
        let directory = try TemporaryDirectory()
        let folder = directory.path("stalls")
        let demo = try Command(program: Command.product("stallwatch-demo"), arguments: ["--output", folder]).run()
        #expect(demo.status == 0, "\(demo.text)")
        let lines = demo.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let reports = try lines.filter { $0.hasPrefix(folder) }.map { file in
            try StallReport(jsonData: Array(Data(contentsOf: URL(fileURLWithPath: file))))
        }
        #expect(reports.count == 15)
        for report in reports { #expect(lines.contains(report.summary)) }
        let kinds = Set(reports.map(\.kind.rawValue))
        #expect(kinds == ["stall", "starvation", "saturation", "spinning", "modeStarvation", "overdue"])
    }

    @Test func anUnknownStallIsAUsageError() throws {
        let demo = try Command(program: Command.product("stallwatch-demo"), arguments: ["--stall", "nothing"]).run()
        #expect(demo.status == 64 && demo.text.contains("There is no stall 'nothing': name one of cpu, "), "\(demo)")
    }
}
