import TestSupport
import Testing

@testable import StallReports
@testable import StallWatch

/// The time limit fails a test whose stream does not end.
@Suite(.timeLimit(.minutes(10))) struct ReportStreamsTests {
    private let streams = ReportStreams()
    private let report: StallReport

    init() throws {
        report = try StallReport.literal()
    }

    private func numbered(_ number: UInt64) -> StallReport {
        var report = report
        report.loop.turn = number
        return report
    }

    private func turns(_ stream: AsyncStream<StallReport>) async -> [UInt64] {
        await stream.reduce(into: []) { $0.append($1.loop.turn) }
    }

    @Test func everyStreamGetsAllReportsAfterItsStart() async {
        #expect(streams.yield(numbered(1)) == 0)
        let first = streams.stream()
        #expect(streams.yield(numbered(2)) == 0)
        let second = streams.stream()
        #expect(streams.yield(numbered(3)) == 0)
        streams.finish()
        #expect(await turns(first) == [2, 3])
        #expect(await turns(second) == [3])
    }

    @Test func aSlowReadersDroppedReportsAreCounted() async {
        let slow = streams.stream()
        let capacity = UInt64(ReportStreams.capacity)
        var dropped = 0
        for number in 1...(capacity + 6) { dropped += streams.yield(numbered(number)) }
        #expect(dropped == 6)
        streams.finish()
        #expect(await turns(slow) == Array(7...(capacity + 6)))
    }

    @Test func everySlowReaderCounts() {
        let slow = [streams.stream(), streams.stream()]
        for _ in 0..<ReportStreams.capacity { #expect(streams.yield(report) == 0) }
        #expect(streams.yield(report) == slow.count)
    }

    @Test func aStreamCreatedAfterTheEndEndsAtOnce() async {
        streams.finish()
        #expect(await turns(streams.stream()) == [])
        #expect(streams.yield(report) == 0)
        streams.finish()
    }

    @Test func anEndedReaderDropsNoReports() {
        do { _ = streams.stream() }
        for _ in 0...ReportStreams.capacity { #expect(streams.yield(report) == 0) }
    }
}
