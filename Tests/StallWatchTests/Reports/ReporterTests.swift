import Foundation
import Logging
import Synchronization
import Testing

@testable import StallWatch

/// The reporter's work runs on the test's own thread: what is submitted before it runs waits in the mailbox.
@Suite struct ReporterTests {
    private let log = RecordedLog()

    private func reporter(_ directory: ReportDirectory? = nil) -> Reporter {
        Reporter(directory: directory, logger: Logger(label: "test") { [log] _ in log }) { .stub() }
    }

    private func ids(_ stream: AsyncStream<StallReport>) async -> [String] {
        await stream.reduce(into: []) { $0.append($1.id) }
    }

    private func run(_ reporter: Reporter) {
        reporter.close()
        reporter.run()
    }

    @Test func whatIsSubmittedIsReportedInOrder() async {
        let reporter = reporter()
        let stream = reporter.streams.stream()
        for id in ["a", "b", "c"] { reporter.submit(.stub(id: id)) }
        run(reporter)
        #expect(await ids(stream) == ["a", "b", "c"])
        #expect(reporter.statistics == StallMonitor.Statistics(stalls: 3))
    }

    @Test func theNewestStateOfAStallWins() async throws {
        let temporary = try TemporaryDirectory()
        let reporter = reporter(try ReportDirectory(path: temporary.path))
        let stream = reporter.streams.stream()
        reporter.submit(.stub(id: "a", state: .ongoing))
        reporter.submit(.stub(id: "b"))
        var ended = StallRecord.stub(id: "a")
        ended.duration = 900_000_000
        reporter.submit(ended)
        run(reporter)
        let reports = await stream.reduce(into: []) { $0.append($1) }
        #expect(reports.map(\.id) == ["a", "b"], "in the order in which they began")
        #expect(reports.map(\.durationMilliseconds) == [900, 400])
        #expect(try temporary.names().count == 2)
    }

    @Test func aStallThatLastsIsOnDiskAndNotYetHandedOut() async throws {
        let temporary = try TemporaryDirectory()
        let reporter = reporter(try ReportDirectory(path: temporary.path))
        let stream = reporter.streams.stream()
        reporter.submit(.stub(state: .ongoing))
        run(reporter)
        #expect(await ids(stream) == [])
        #expect(reporter.statistics == StallMonitor.Statistics())
        let names = try temporary.names()
        try #require(names.count == 1)
        let json = try #require(readSmallFile(temporary.path + "/" + names[0]))
        #expect(try StallReport(jsonData: Array(json.utf8)).state == .ongoing)
        #expect(log.messages.isEmpty)
    }

    @Test func theMailboxIsBoundedAndWhatIsLostIsCounted() async {
        let reporter = reporter()
        let stream = reporter.streams.stream()
        let capacity = Reporter.mailboxCapacity
        for id in 1...(capacity + 10) { reporter.submit(.stub(id: "\(id)")) }
        run(reporter)
        #expect(reporter.statistics.reportsLost == 10)
        #expect(reporter.statistics.stalls == capacity)
        #expect(reporter.statistics.reportsDropped == capacity - ReportStreams.capacity)
        #expect(await ids(stream).last == "\(capacity + 10)")
    }

    /// A stall that lasts would be lost for good; of one that is over, the earlier state may be on disk.
    @Test func aFullMailboxKeepsTheStallsThatLast() {
        let reporter = reporter()
        let capacity = Reporter.mailboxCapacity
        reporter.submit(.stub(id: "lasts", state: .ongoing))
        for id in 1...capacity { reporter.submit(.stub(id: "\(id)")) }
        reporter.submit(.stub(id: "lasts"))
        run(reporter)
        #expect(reporter.statistics.reportsLost == 1)
        #expect(reporter.statistics.stalls == capacity)
    }

    @Test func aReportThatCannotBeWrittenIsCountedHandedOutAndLoggedOnce() async throws {
        var temporary: TemporaryDirectory? = try TemporaryDirectory()
        let parent = try #require(temporary?.path)
        let path = parent + "/reports"
        let reporter = reporter(try ReportDirectory(path: path))
        // A file in the directory's place: nothing can be written there any more.
        try FileManager.default.removeItem(atPath: path)
        _ = try #require(temporary).file("reports")
        let stream = reporter.streams.stream()
        for id in ["a", "b", "c"] { reporter.submit(.stub(id: id)) }
        run(reporter)
        #expect(reporter.statistics.failedWrites == 3)
        #expect(reporter.statistics.lastWriteError?.code == .unwritableReports)
        #expect(reporter.statistics.stalls == 3)
        #expect(await ids(stream) == ["a", "b", "c"])
        #expect(log.messages.filter { $0.contains("not written") }.count == 1)
        temporary = nil
    }

    @Test func oneLineAStallIsLoggedAtLevelInfo() {
        let reporter = reporter()
        reporter.submit(.stub(id: "a"))
        run(reporter)
        #expect(log.messages == ["info main stalled for 400 ms"])
    }

    @Test func withoutAnythingToDoItEnds() async {
        let reporter = reporter()
        let stream = reporter.streams.stream()
        run(reporter)
        #expect(await ids(stream) == [])
    }
}

/// Keeps what is logged.
///
/// `@unchecked Sendable`: the messages are behind a mutex, and nobody sets the other two after the start.
private final class RecordedLog: LogHandler, @unchecked Sendable {
    private let recorded = Mutex<[String]>([])
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    var messages: [String] { recorded.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        recorded.withLock { $0.append("\(event.level) \(event.message)") }
    }
}
