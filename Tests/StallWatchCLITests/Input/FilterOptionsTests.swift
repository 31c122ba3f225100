import ArgumentParser
import Foundation
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct ArgumentsTests {
    @Test(arguments: [
        ("500ms", 500.0), ("2s", 2_000), ("1.5s", 1_500), ("250us", 0.25), ("3m", 180_000), ("3min", 180_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000), ("0ms", 0),
    ])
    func durations(text: String, milliseconds: Double) throws {
        #expect(try DurationArgument(parsing: text).milliseconds == milliseconds)
    }

    @Test(arguments: ["", "5", "ms", "-5ms", "5 years", "infs", "nans", "s", "1e30h", "36501d"]) func noDurations(
        text: String
    ) {
        #expect(throws: ValidationError.self) { try DurationArgument(parsing: text) }
    }

    @Test(arguments: [("500ms", "500ms"), ("60s", "1min"), ("90s", "90s"), ("24h", "1d")])
    func durationsArePrintedInTheFormOfTheInput(text: String, printed: String) throws {
        #expect(try DurationArgument(parsing: text).description == printed)
    }

    @Test(arguments: [
        ("2026-11-21", "2026-11-21T00:00:00.000000Z"), ("2026-11-21T08:30", "2026-11-21T08:30:00.000000Z"),
        ("2026-11-21 08:30:15Z", "2026-11-21T08:30:15.000000Z"),
        ("2026-11-21T08:30:15.5", "2026-11-21T08:30:15.500000Z"),
        ("2h", "2026-11-21T10:00:00.000000Z"),
    ])
    func times(text: String, time: String) throws {
        let now = try #require(Timestamp("2026-11-21T12:00:00.000000Z"))
        #expect(try TimeArgument(parsing: text, now: now).time.description == time)
    }

    @Test(arguments: [
        "", "yesterday", "2026", "2026-13-01", "2026-11-31", "2026-11-21T25:00", "2026-11-21T08:30:15.1234567Z",
    ])
    func noTimes(text: String) throws {
        let now = try #require(Timestamp("2026-11-21T12:00:00.000000Z"))
        #expect(throws: ValidationError.self) { try TimeArgument(parsing: text, now: now) }
    }
}

@Suite struct ReportSummaryTests {
    @Test func aSummaryEqualsThatOfTheWholeReport() throws {
        let fixtures = [
            ReportFixture(),
            ReportFixture(number: 9, kind: "saturation", state: "abandoned", fingerprint: nil, repeats: 12),
            ReportFixture(metadata: [:], function: "a\\\"b\\u00e9", file: "/é/😀.swift"),
        ]
        for fixture in fixtures {
            let report = try StallReport(jsonData: fixture.bytes)
            #expect(try ReportSummary(json: fixture.bytes, .init(functions: true)) == ReportSummary(report))
            #expect(try ReportSummary(json: report.jsonData(), .init(functions: true)) == ReportSummary(report))
            #expect(try ReportSummary(json: fixture.bytes).functions.isEmpty)
        }
    }

    @Test(arguments: [
        (
            "\"durationMilliseconds\": 500.0", "\"durationMilliseconds\": -1",
            "$.durationMilliseconds: the duration is negative"
        ),
        (
            "\"durationMilliseconds\": 500.0", "\"durationMilliseconds\": 1e15",
            "$.durationMilliseconds: the duration is neg"
        ),
        ("\"repeats\": 0", "\"repeats\": -1", "$.repeats: the count is negative"),
        ("\"pid\": 4700", "\"pid\": \"x\"", "$.process.pid: Expected to decode Int32 but found a string"),
        ("\"repeats\": 0,", "", "repeats is missing"),
    ])
    func aFaultIsNamedByItsPlace(right: String, wrong: String, fault: String) throws {
        let text = ReportFixture().json
        try #require(text.contains(right))
        let bytes = Array(text.replacingOccurrences(of: right, with: wrong).utf8)
        let error = #expect(throws: UnreadableReport.self) { try ReportSummary(json: bytes) }
        #expect(error?.reason.hasPrefix("this is not a stall report: \(fault)") == true, "\(error?.reason ?? "")")
    }
}

@Suite struct FileReaderTests {
    private func pipe(in directory: TemporaryDirectory) throws -> String {
        let path = directory.path("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        return path
    }

    @Test(.timeLimit(.minutes(10))) func `a pipe without a writer is given up`() throws {
        let directory = try TemporaryDirectory()
        let path = try pipe(in: directory)
        #expect(
            throws: CommandFailure(.nothing, "\(path) is a pipe that no program writes to: none came in 0 seconds.")
        ) {
            try FileReader(path: path, writerLimit: 0)
        }
    }

    @Test(.timeLimit(.minutes(10))) func `a pipe is read to its end`() throws {
        let directory = try TemporaryDirectory()
        let path = try pipe(in: directory)
        // Opened for both, so that no side waits for the other.
        let writer = open(path, O_RDWR | O_CLOEXEC)
        try #require(writer >= 0)
        let reader = try FileReader(path: path, writerLimit: 0)
        try #require(write(writer, "reports", 7) == 7)
        #expect(try reader.read(100) == Array("reports".utf8))
        close(writer)
        #expect(try reader.read(100) == [])
    }
}

@Suite struct DocumentStreamTests {
    /// Returns the documents of a text that is read in pieces of `size` bytes, with their lines.
    private func documents(_ text: String, size: Int, isLines: Bool = false, limit: Int = 1_000) throws -> [String] {
        var left = Array(text.utf8)[...]
        let stream = DocumentStream(isLines: isLines, limit: limit) { _ in
            defer { left = left.dropFirst(size) }
            return Array(left.prefix(size))
        }
        var documents: [String] = []
        while let document = try stream.next() {
            documents.append("\(document.line):\(String(decoding: document.bytes, as: UTF8.self))")
        }
        return documents
    }

    @Test(arguments: [1, 2, 3, 7, 100]) func oneDocumentPerLine(size: Int) throws {
        #expect(
            try documents("{\"a\":1}\n\n{\"b\":2}\n{\"c\":3}", size: size) == [
                "1:{\"a\":1}", "3:{\"b\":2}", "4:{\"c\":3}",
            ])
        #expect(try documents("{\"a\"\n{\"b\":2}\n", size: size, isLines: true) == ["1:{\"a\"", "2:{\"b\":2}"])
        // A broken line is one.
        #expect(
            try documents("{\"a\":1}\nrubbish\n{\"c\":3}\n", size: size) == ["1:{\"a\":1}", "2:rubbish", "3:{\"c\":3}"])
    }

    @Test(arguments: [1, 2, 3, 7, 100]) func documentsOneAfterAnother(size: Int) throws {
        let text = "{\n \"a\": [\n{}\n]\n}\n{\n \"b\": 2\n} {\"c\":\n3}\n"
        #expect(try documents(text, size: size) == ["1:{\n \"a\": [\n{}\n]\n}", "6:{\n \"b\": 2\n}", "8:{\"c\":\n3}"])
    }

    @Test(arguments: [1, 2, 3, 7, 100]) func aBrokenDocumentDoesNotHideTheNext(size: Int) throws {
        let text = "{\n \"a\": [1,\n{\n \"b\": 2\n}\nrubbish\n{\n \"c\": 3\n}\n"
        let found = try documents(text, size: size)
        #expect(found.first?.hasPrefix("1:{\n \"a\": [1,") == true)
        #expect(found.contains("7:{\n \"c\": 3\n}"))
        #expect(found.count <= 4)
    }

    @Test(arguments: [1, 5, 64, 1_000]) func aTooLongDocumentIsCut(size: Int) throws {
        let long = "{\"a\":\"" + String(repeating: "x", count: 500) + "\"}"
        let lines = try documents("{\"b\":1}\n\(long)\n{\"c\":2}\n", size: size, limit: 100)
        #expect(lines.count == 3)
        #expect(lines[0] == "1:{\"b\":1}" && lines[1].utf8.count == 2 + 101 && lines[2] == "3:{\"c\":2}")
        let documents = try documents("{\n\"b\":1}\n\(long)\n{\n\"c\":2}\n", size: size, limit: 100)
        #expect(documents.count == 3 && documents.last == "4:{\n\"c\":2}", "\(documents)")
    }

    @Test(arguments: ["", "\n\n \t\n"]) func blankInputHasNoDocument(text: String) throws {
        #expect(try documents(text, size: 3).isEmpty)
    }
}
