import InMemoryLogging
import Logging
import Testing
import TestSupport

@testable import StallReports
@testable import StallWatch

/// The lines of the app's log.
@Suite struct LogSinkTests {
    @Test func `the log says what is serious, why, and where the report is`() throws {
        let handler = InMemoryLogHandler()
        let sink = LogSink(Logger(label: "test") { _ in handler }, directory: "/stalls")
        var report = try StallReport.literal()
        report.culprit = StallReport.Culprit(function: "save()", file: "/src/Store.swift", line: 8)
        report.cause = .fixture(kind: .deadlock, summary: "Deadlock.")
        report.fingerprint = "9f2c41d07a3be815"
        report.state = .ongoing
        // Once while it lasts, though each new sample brings an update.
        for _ in 0..<3 { sink.receive(.init(.updated, report)) }
        sink.receive(.init(.escalated, report))
        report.state = .ended
        report.cause?.kind = .sleep
        sink.receive(.init(ended: report))
        report.state = .abandoned
        sink.receive(.init(.recovered, report))
        let entries = handler.entries
        #expect(entries.map(\.level) == [.error, .error, .warning, .error])
        let first = entries.first?.message.description ?? ""
        #expect(first.contains(" at Store.swift:8 (timer)\n  why  Deadlock.\n  try  "))
        #expect(entries.dropFirst().first?.message.description.hasPrefix("overdue: ") == true)
        let metadata = try #require(entries.first?.metadata)
        #expect(
            metadata == [
                "kind": "stall", "state": "ongoing", "loop": "main", "durationMilliseconds": "812.4",
                "thresholdMilliseconds": "250.0", "repeats": "0", "callout": "timer", "culprit": "save()",
                "file": "/src/Store.swift:8",
                "cause": "deadlock", "fingerprint": "9f2c41d07a3be815", "report": "\(report.id)",
                "path": "/stalls/\(report.fileName)",
            ])
    }

    @Test func `no name in a line of the log is obeyed by a terminal`() throws {
        let handler = InMemoryLogHandler()
        let sink = LogSink(Logger(label: "test") { _ in handler }, directory: "/sta\nlls")
        var report = try StallReport.literal()
        report.loop.label = "main\u{1b}[2J"
        report.culprit = StallReport.Culprit(function: "save()\r", file: "/src/\u{202e}Store.swift", line: 8)
        report.cause = .fixture(kind: .io, summary: "Blocked in read(/tmp/a\nERROR: b).")
        sink.receive(.init(ended: report))
        sink.receive(.init(notice: "a\nb", ["reason": "c\u{9b}d"]))
        for entry in handler.entries {
            for text in [entry.message.description] + entry.metadata.values.map({ "\($0)" }) {
                // The lines that begin with "why" and "try" are the monitor's own.
                let line = text.replacing("\n  why  ", with: "").replacing("\n  try  ", with: "")
                #expect(line == line.withoutControls)
            }
        }
        #expect(handler.entries.count == 2)
        #expect(report.summary.contains("\n  why  Blocked in read(/tmp/a\u{fffd}ERROR: b).\n"))
        report.cause?.systemCall = StallReport.SystemCall(number: 0, name: "read", target: "/tmp/a\nb\u{efe9}")
        #expect(report.cause?.sentence.contains("/tmp/a\u{fffd}b\u{fffd}") == true)
    }
}
