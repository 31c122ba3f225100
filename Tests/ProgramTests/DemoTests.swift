import Foundation
import TestSupport
import Testing
import TextOutput

@testable import StallReports

/// The demo as a newcomer runs it.
@Suite(.serialized, .ownThread) struct DemoTests {
    private let directory = TemporaryDirectory.ofTest()

    /// Runs the demo; returns its text with single spaces in place of line breaks and columns, and the reports.
    private func run(_ arguments: [String]) throws -> (text: String, reports: [StallReport]) {
        let demo = try Command(
            program: Command.product("stallwatch-demo"), arguments: arguments, directory: directory.path
        ).run()
        #expect(demo.status == 0 && demo.errors == "", "\(demo.text)")
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("stalls"))
        return (
            demo.output.split { $0.isWhitespace }.joined(separator: " "),
            try names.filter(StallReport.isFileName).sorted().map { try directory.report("stalls/\($0)") }
        )
    }

    @Test(.timeLimit(.minutes(20))) func `make demo freezes five times, and says where, why and what to do`() throws {
        let (text, reports) = try run([])
        let functions = [
            "NoteStore.count()", "NoteStore.load(for:)", "NotesApp.retryLater()", "NotesApp.checkSpelling()",
            "NoteStore.deleteAll()",
        ]
        #expect(reports.compactMap(\.culprit?.function).filter(functions.contains) == functions, "\(text)")
        for report in reports {
            let cause = try #require(report.cause)
            #expect(text.contains(" why \(cause.summary)"), "\(text)")
            if let advice = report.advice { #expect(text.contains(" try \(advice.text)"), "\(text)") }
        }
        #expect(reports.contains { $0.cause?.kind == .deadlock } && reports.contains { $0.cause?.kind == .lock })
        #expect(text.hasPrefix("stallwatch-demo: a small app whose main loop freezes five times. "))
        #expect(text.contains(" \(reports.count) freezes, ") && text.contains(" Next: swift run stallwatch show 1 "))
    }

    @Test(.timeLimit(.minutes(20))) func `each kind of freeze is reported`() throws {
        let kinds: [(freeze: String, kind: StallKind)] = [
            ("pool", .starvation), ("saturation", .saturation), ("spinning", .spinning), ("mode", .modeStarvation),
            ("overdue", .overdue),
        ]
        let (text, reports) = try run(kinds.flatMap { ["--freeze", $0.freeze] })
        #expect(text.hasPrefix("stallwatch-demo: a small app whose loops freeze. "), "\(text)")
        #expect(Set(reports.map(\.kind)).isSuperset(of: kinds.map(\.kind)))
    }

    @Test(.timeLimit(.minutes(20))) func `a semaphore is no lock, and lines fit the terminal`() throws {
        let demo = try Command(
            program: Command.product("stallwatch-demo"), arguments: ["--freeze", "lock", "--freeze", "semaphore"],
            environment: ["COLUMNS": "80"], directory: directory.path
        ).succeed()
        let lines = demo.split(separator: "\n").map(String.init)
        #expect(lines.allSatisfy { $0.columns <= 80 }, "\(demo)")
        let ofSemaphore = lines.filter { $0.contains("is frozen") && $0.contains("fetchTitle") }
        #expect(ofSemaphore.allSatisfy { $0.hasSuffix("  waits for a semaphore") }, "\(demo)")
    }

    @Test(.timeLimit(.minutes(20))) func `a folder with a space is quoted in the next command`() throws {
        let demo = try Command(
            program: Command.product("stallwatch-demo"), arguments: ["--freeze", "sleep", "--output", "my stalls"],
            directory: directory.path
        ).succeed()
        #expect(demo.contains("swift run stallwatch show 'my stalls' 1 "), "\(demo)")
    }

    @Test func `an unknown freeze is a usage error that names the fifteen`() throws {
        let demo = try Command(program: Command.product("stallwatch-demo"), arguments: ["--freeze", "x"]).run()
        #expect(demo.status == 64 && demo.text.contains("There is no freeze 'x': name one of lock, "), "\(demo)")
        let names = demo.text.split(separator: "name one of ").last?.prefix { $0 != "." }
        #expect(names?.split(separator: ",").count == 15, "\(demo)")
    }
}
