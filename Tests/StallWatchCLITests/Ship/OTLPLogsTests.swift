import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

/// Returns the messages in a field of a message in the protobuf format.
func messages(_ bytes: [UInt8], _ field: Int) -> [[UInt8]] {
    (ProtobufReader.fields(bytes) ?? []).compactMap { found in
        if case (field, .data(let bytes)) = found { bytes } else { nil }
    }
}

@Suite struct LogRecordTests {
    private func record(_ fixture: ReportFixture, isAbandoned: Bool = false) throws -> LogRecord {
        LogRecord(try StallReport(jsonData: fixture.bytes), isAbandoned: isAbandoned)
    }

    @Test func aReportHasTheNamesOfTheConventions() throws {
        let record = try record(ReportFixture(number: 7, repeats: 2))
        #expect(LogRecord.eventName == "stallwatch.stall")
        #expect(record.time == 1_795_248_000_123_456_000)
        #expect(record.severity == .warning)
        #expect(record.body == "main stalled for 500 ms in NoteStore.save(_:) (timer)")
        let attributes = record.attributes
        #expect(attributes["log.record.uid"] == .text(ReportFixture(number: 7).id))
        #expect(attributes["code.function.name"] == .text("NoteStore.save(_:)"))
        #expect(attributes["code.file.path"] == .text("/src/notes/NoteStore.swift"))
        #expect(attributes["code.line.number"] == .integer(88))
        #expect(attributes["thread.id"] == .integer(4_700))
        #expect(attributes["exception.message"] == .text("Blocked for 480 of 500 ms in pthread_mutex_lock."))
        #expect(attributes["stallwatch.duration_ms"] == .number(500))
        #expect(attributes["stallwatch.repeats"] == .integer(2))
        #expect(attributes["stallwatch.cause"] == .text("lock"))
        #expect(attributes["stallwatch.metadata.version"] == .text("1.4.2"))
        #expect(
            attributes["exception.stacktrace"]
                == .text(
                    """
                    at pthread_mutex_lock (libc.so.6)
                    at NoteStore.save(_:) (/src/notes/NoteStore.swift:88)
                    at __CFRunLoopRun (libc.so.6)
                    at notes+0x2f3a0

                    """))
    }

    @Test func traceAndSpanComeFromTheMetadata() throws {
        var fixture = ReportFixture()
        fixture.metadata = ["trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"]
        let record = try record(fixture)
        #expect(record.trace.traceID.count == 16)
        #expect(record.trace.traceID.first == 0x0a)
        #expect(record.trace.spanID == [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31])
        #expect(record.attributes["stallwatch.metadata.trace_id"] == nil)
    }

    @Test(arguments: ["", "0af7", "zz", String(repeating: "0", count: 32), "+af7651916cd43dd8448eb211c80319c"])
    func aWrongTraceIsLeftOut(id: String) throws {
        var fixture = ReportFixture()
        fixture.metadata = ["trace_id": id]
        #expect(try record(fixture).trace.traceID == [])
    }

    @Test func anOngoingStallOfADeadProcessIsAbandoned() throws {
        let record = try record(ReportFixture(state: "ongoing"), isAbandoned: true)
        #expect(record.attributes["stallwatch.state"] == .text("abandoned"))
        #expect(record.severity == .error)
        #expect(try self.record(ReportFixture(), isAbandoned: true).attributes["stallwatch.state"] == .text("ended"))
    }

    @Test func theResourceIsTheProcess() throws {
        let report = try StallReport(jsonData: ReportFixture().bytes)
        var common = OTLPAttributes()
        common.set("deployment.environment.name", "prod")
        common.set("host.name", "ignored")
        let attributes = OTLPAttributes(of: report, common: common)
        #expect(attributes["service.name"] == .text("notes"))
        #expect(attributes["service.version"] == .text("1.4.2"))
        #expect(attributes["host.name"] == .text("web-3"))
        #expect(attributes["host.arch"] == .text("amd64"))
        #expect(attributes["process.pid"] == .integer(4_700))
        #expect(attributes["process.creation.time"] == .text("2026-11-21T07:00:00.000000Z"))
        #expect(attributes["deployment.environment.name"] == .text("prod"))
        common.set("service.name", "mail")
        #expect(OTLPAttributes(of: report, common: common)["service.name"] == .text("mail"))
        var named = ReportFixture()
        named.metadata["service.name"] = "ledger"
        let own = OTLPAttributes(of: try StallReport(jsonData: named.bytes), common: common)
        #expect(own["service.name"] == .text("ledger"))
    }

    @Test func neighborsOfOneProcessShareTheirResource() throws {
        var request = LogsRequest()
        for (number, pid) in [(1, Int32(10)), (2, 10), (3, 11), (4, 10)] {
            let report = try StallReport(jsonData: ReportFixture(number: number, pid: pid).bytes)
            request.add(LogRecord(report).bytes(), from: OTLPAttributes(of: report))
        }
        #expect(request.count == 4)
        // Order counts more than size, so the last one is a group of its own.
        #expect(ProtobufReader.fields(request.bytes())?.count == 3)
    }

    /// 0 is a value in an attribute, while it is left out elsewhere.
    @Test func zeroIsWritten() {
        var writer = ProtobufWriter()
        writer.value(.integer(0))
        #expect(ProtobufReader.fields(writer.bytes)?.map(\.1) == [.number(0)])
        writer = ProtobufWriter()
        writer.value(.number(0))
        #expect(ProtobufReader.fields(writer.bytes)?.map(\.1) == [.number(0)])
    }
}

@Suite struct MetricsRequestTests {
    private let statistics = """
        { "stalls": 3, "suppressed": { "repeated": 2 }, "reportsLost": 1,
          "loops": [
            { "label": "main", "watchedSeconds": 1800, "turns": 101, "busySeconds": 18, "stalls": 3, "stallSeconds": 1.5,
              "latency": [ { "belowMicroseconds": 500000, "turns": 2 }, { "turns": 1 }, { "belowMicroseconds": 1000, "turns": 98 } ] }
          ] }
        """

    private func metrics(_ text: String) throws -> [String: [UInt8]] {
        let scratch = try TemporaryDirectory()
        let file = try StatisticsFile(path: scratch.write("statistics.json", text))
        let request = MetricsRequest(file, end: 2_000_000_000_000).bytes(from: OTLPAttributes())
        let metrics = messages(request, 1).flatMap { messages($0, 2) }.flatMap { messages($0, 2) }
        return Dictionary(
            uniqueKeysWithValues: metrics.map { (String(decoding: messages($0, 1)[0], as: UTF8.self), $0) })
    }

    @Test func `damaged statistics have bounds`() throws {
        let buckets = (0..<2_049).map { _ in #"{ "turns": 9007199254740991 }"# }.joined(separator: ", ")
        let loop = #""label": "main", "watchedSeconds": 20000000000, "latency": [ \#(buckets) ]"#
        #expect(try metrics(#"{ "suppressed": {}, "loops": [ { \#(loop) } ] }"#).count == 8)
    }

    @Test func sumsAreCumulativeFromTheMonitorsStart() throws {
        let sum = try #require(try metrics(statistics)["stallwatch.loop.stalls"].map { messages($0, 7)[0] })
        let fields = try #require(ProtobufReader.fields(sum))
        #expect(fields.suffix(2).map(\.0) == [2, 3])
        #expect(fields.suffix(2).map(\.1) == [.number(2), .number(1)])
        let point = try #require(ProtobufReader.fields(messages(sum, 1)[0]))
        let numbers = Dictionary(uniqueKeysWithValues: point.map { ($0.0, $0.1) })
        #expect(numbers[2] == .number(200_000_000_000))
        #expect(numbers[3] == .number(2_000_000_000_000))
        #expect(numbers[6] == .number(3))
    }

    @Test func theHistogramHasABucketMoreThanBounds() throws {
        let histogram = try #require(
            try metrics(statistics)["stallwatch.loop.turn.duration"].map { messages($0, 9)[0] })
        let point = messages(histogram, 1)[0]
        let words = { (field: Int) -> [UInt64] in
            let bytes = messages(point, field)[0]
            return stride(from: 0, to: bytes.count, by: 8).map { start in
                bytes[start..<(start + 8)].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            }
        }
        #expect(words(6) == [98, 2, 1])
        #expect(words(7).map(Double.init(bitPattern:)) == [0.001, 0.5])
    }

    @Test func eachNumberOfTheFileIsThere() throws {
        #expect(
            try metrics(statistics).keys.sorted() == [
                "stallwatch.loop.busy_time", "stallwatch.loop.stalled_time", "stallwatch.loop.stalls",
                "stallwatch.loop.turn.duration", "stallwatch.loop.turns", "stallwatch.loop.watched_time",
                "stallwatch.report.losses", "stallwatch.suppressed",
            ])
    }

    @Test func aFileIsSentOnceUntilItChanges() throws {
        let scratch = try TemporaryDirectory()
        var log: [String] = []
        let path = scratch.path("statistics.json")
        let shipped = ShippedStatistics(path: path, common: OTLPAttributes()) { log.append($0) }
        #expect(shipped.nextRequest() == nil)
        try scratch.write("statistics.json", statistics)
        let first = try #require(shipped.nextRequest())
        shipped.apply(.retry(reason: "", after: nil, isRefusal: false))
        #expect(shipped.nextRequest() == first)
        shipped.apply(.delivered)
        #expect(shipped.nextRequest() == nil)
        try scratch.write("statistics.json", "{}")
        #expect(shipped.nextRequest() == nil)
        #expect(shipped.nextRequest() == nil)
        #expect(log == ["\(path) is not sent: this is not a statistics file"])
        try scratch.write("statistics.json", statistics)
        #expect(shipped.nextRequest() != nil)
    }
}

@Suite struct OTLPAnswerTests {
    private let protobuf = "application/x-protobuf"

    @Test func anEmptyAnswerTookAll() {
        #expect(OTLPAnswer(status: 200).partialSuccess == .init())
        #expect(OTLPAnswer(status: 200, contentType: "text/plain").partialSuccess == .init())
        #expect(
            OTLPAnswer(status: 200, contentType: "application/json", body: Array("{}".utf8)).partialSuccess == .init())
    }

    @Test func rejectedRecordsAreCounted() {
        var writer = ProtobufWriter()
        writer.message(1) {
            $0.number(1, 3)
            $0.string(2, "too old")
        }
        let answer = OTLPAnswer(status: 200, contentType: protobuf, body: writer.bytes)
        #expect(answer.partialSuccess == .init(rejected: 3, message: "too old"))
    }

    @Test func aPageIsNotAnAnswerOfOTLP() {
        let page = OTLPAnswer(status: 200, contentType: "text/html", body: Array("<html>".utf8))
        #expect(page.partialSuccess == nil)
        #expect(OTLPAnswer(status: 200, contentType: protobuf, body: [0x0a, 0x7f]).partialSuccess == nil)
    }

    @Test func theMessageOfAStatusIsFound() {
        var writer = ProtobufWriter()
        writer.number(1, 3)
        writer.string(2, "field 9 is missing")
        #expect(OTLPAnswer(status: 400, contentType: protobuf, body: writer.bytes).message == "field 9 is missing")
        #expect(
            OTLPAnswer(status: 502, contentType: "text/html", body: Array("<h1>\n  Bad</h1>".utf8)).message
                == "<h1> Bad</h1>")
        #expect(OTLPAnswer(status: 0, error: "Connection refused").message == "Connection refused")
    }

    /// Messages that break off, and lengths that lie.
    @Test func brokenMessagesAreNone() {
        var writer = ProtobufWriter()
        writer.number(1, 300)
        writer.fixed(2, 7)
        writer.string(3, "abc")
        let fields = ProtobufReader.fields(writer.bytes)
        #expect(fields?.map(\.0) == [1, 2, 3])
        #expect(fields?.map(\.1) == [.number(300), .number(7), .data(Array("abc".utf8))])
        // The ends of the first and the second field.
        let whole = [0, 3, 12]
        for length in 0..<writer.bytes.count {
            #expect((ProtobufReader.fields(Array(writer.bytes.prefix(length))) != nil) == whole.contains(length))
        }
        let huge: [UInt8] = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        #expect(ProtobufReader.fields(huge) == nil)
        #expect(ProtobufReader.fields([0x00]) == nil)
        #expect(ProtobufReader.fields([0x0b]) == nil)
    }
}

extension OTLPAnswerTests {
    @Test func aVarintWithoutEndIsNone() {
        #expect(ProtobufReader.fields([UInt8](repeating: 0xff, count: 20)) == nil)
    }
}
