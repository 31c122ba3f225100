import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct MetricsRequestTests {
    private let statistics = """
        { "stalls": 3, "suppressed": { "repeated": 2 }, "reportsLost": 1,
          "loops": [
            { "label": "main", "watchedSeconds": 1800, "turns": 101, "busySeconds": 18, "stalls": 3, "stallSeconds": 1.5,
              "latency": [ { "belowMicroseconds": 500000, "turns": 2 }, { "turns": 1 }, { "belowMicroseconds": 1000, "turns": 98 } ] }
          ] }
        """

    private func messages(_ bytes: [UInt8], _ field: Int) -> [[UInt8]] {
        (ProtobufReader.fields(bytes) ?? []).compactMap { found in
            if case (field, .data(let bytes)) = found { bytes } else { nil }
        }
    }

    private func metrics(_ text: String) throws -> [String: [UInt8]] {
        let scratch = try TemporaryDirectory()
        let file = try StatisticsFile(path: scratch.write("statistics.json", text))
        let request = MetricsRequest(file, end: 2_000_000_000_000).bytes(
            from: OTLPResource(attributes: OTLPAttributes()))
        let metrics = messages(request, 1).flatMap { messages($0, 2) }.flatMap { messages($0, 2) }
        return Dictionary(
            uniqueKeysWithValues: metrics.map { (String(decoding: messages($0, 1)[0], as: UTF8.self), $0) })
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
            let bytes = self.messages(point, field)[0]
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
