import StallReports
import Testing

@testable import StallWatchCLI

@Suite struct LogRecordTests {
    private func record(_ fixture: ReportFixture, isAbandoned: Bool = false) throws -> LogRecord {
        LogRecord(try StallReport(jsonData: fixture.bytes), isAbandoned: isAbandoned)
    }

    @Test func aReportHasTheNamesOfTheConventions() throws {
        let record = try record(ReportFixture(number: 7, repeats: 2))
        #expect(record.eventName == "stallwatch.stall")
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
        #expect(record.traceID.count == 16)
        #expect(record.traceID.first == 0x0a)
        #expect(record.spanID == [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31])
        #expect(record.attributes["stallwatch.metadata.trace_id"] == nil)
    }

    @Test(arguments: ["", "0af7", "zz", String(repeating: "0", count: 32), "+af7651916cd43dd8448eb211c80319c"])
    func aWrongTraceIsLeftOut(id: String) throws {
        var fixture = ReportFixture()
        fixture.metadata = ["trace_id": id]
        #expect(try record(fixture).traceID == [])
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
        let attributes = OTLPResource(report, common: common).attributes
        #expect(attributes["service.name"] == .text("notes"))
        #expect(attributes["service.version"] == .text("1.4.2"))
        #expect(attributes["host.name"] == .text("web-3"))
        #expect(attributes["host.arch"] == .text("amd64"))
        #expect(attributes["process.pid"] == .integer(4_700))
        #expect(attributes["process.creation.time"] == .text("2026-11-21T07:00:00.000000Z"))
        #expect(attributes["deployment.environment.name"] == .text("prod"))
        common.set("service.name", "mail")
        #expect(OTLPResource(report, common: common).attributes["service.name"] == .text("mail"))
        var named = ReportFixture()
        named.metadata["service.name"] = "ledger"
        let own = OTLPResource(try StallReport(jsonData: named.bytes), common: common)
        #expect(own.attributes["service.name"] == .text("ledger"))
    }

    @Test func neighborsOfOneProcessShareTheirResource() throws {
        var request = LogsRequest()
        for (number, pid) in [(1, Int32(10)), (2, 10), (3, 11), (4, 10)] {
            let report = try StallReport(jsonData: ReportFixture(number: number, pid: pid).bytes)
            request.add(LogRecord(report).bytes(), from: OTLPResource(report))
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
        writer = ProtobufWriter()
        writer.value(.flag(false))
        #expect(ProtobufReader.fields(writer.bytes)?.map(\.1) == [.number(0)])
    }
}
