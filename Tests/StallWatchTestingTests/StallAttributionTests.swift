import StallReports
import TestSupport
import Testing

@testable import StallWatchTesting

@Suite struct StallAttributionTests {
    private static let file = "/app/Tests/FileTests.swift"
    /// When the stall begins: 2026-11-21T08:00:00.123456Z in the literal.
    private static let start = Timestamp("2026-11-21T08:00:00.123456Z") ?? Timestamp(microsecondsSince1970: 0)

    private static func candidate(
        _ name: String?, beganBefore milliseconds: Int64 = 50, endedAfter end: Int64? = nil
    ) -> StallAttribution.Candidate {
        StallAttribution.Candidate(
            function: name.map { WatchedFunction(name: $0, file: file) },
            began: Timestamp(microsecondsSince1970: start.microsecondsSince1970 - milliseconds * 1_000),
            ended: end.map { Timestamp(microsecondsSince1970: start.microsecondsSince1970 + $0 * 1_000) }
        )
    }

    /// Returns a report of 1,000 ms.
    ///
    /// Each sample has its functions, innermost first, or `nil` for no stack, and its milliseconds.
    private static func report(_ samples: [(functions: [String]?, weight: Double)]) throws -> StallReport {
        var report = try StallReport.literal()
        report.durationMilliseconds = 1_000
        report.stacks = []
        report.frames = []
        report.samples = samples.map { functions, weight in
            var sample = StallReport.Sample(
                atMilliseconds: 100, weightMilliseconds: weight, isValid: true, isComplete: true, heldMicroseconds: 0,
                captureMicroseconds: 0)
            guard let functions else { return sample }
            sample.stack = report.stacks.count
            report.stacks.append(Array(report.frames.count..<report.frames.count + functions.count))
            report.frames += functions.enumerated().map { index, function in
                StallReport.Frame(
                    image: 0, offset: "0x\(index)", function: function, file: file, line: 7, isInApp: true, kind: .code)
            }
            return sample
        }
        return report
    }

    private static let two = [candidate("FileTests.a()"), candidate("FileTests.b()")]
    private static let runner = "closure #1 in static Runner._runTestCase(_:within:context:)"

    @Test func `the test on the stack is the owner`() throws {
        let report = try Self.report([(["load()", "FileTests.b()", Self.runner], 1_000)])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts.keys.sorted() == [1])
        #expect(attribution.parts[1]?.share == 1)
        #expect(attribution.parts[1]?.report == report)
        #expect(attribution.unknown == nil)
    }

    @Test func `a stall without a test on the stack belongs to the only test that runs`() throws {
        let report = try Self.report([(["load()", "closure #1 in start()"], 1_000)])
        let attribution = StallAttribution(report, among: [Self.candidate("FileTests.a()")])
        #expect(attribution.parts[0]?.share == 1)
    }

    @Test func `of several tests the owner is unknown`() throws {
        let report = try Self.report([(["load()"], 1_000)])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown?.candidates == [0, 1])
        #expect(attribution.unknown?.part.share == 1)
    }

    @Test func `a test that began later is not the owner`() throws {
        let report = try Self.report([(["load()"], 1_000)])
        let attribution = StallAttribution(
            report, among: [Self.candidate("FileTests.a()"), Self.candidate("FileTests.b()", beganBefore: -20)])
        #expect(attribution.parts.keys.sorted() == [0])
        #expect(attribution.unknown == nil)
    }

    @Test func `a stall that began before the only test belongs to no test`() throws {
        let report = try Self.report([(["load()"], 1_000)])
        let attribution = StallAttribution(report, among: [Self.candidate("FileTests.a()", beganBefore: -20)])
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown == nil)
    }

    @Test func `another test on the stack is not charged to the one in scope`() throws {
        let report = try Self.report([(["load()", "OtherTests.c()", Self.runner], 1_000)])
        let attribution = StallAttribution(report, among: [Self.candidate("FileTests.a()")])
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown == nil)
    }

    @Test func `a turn of two tests is split by their samples`() throws {
        let report = try Self.report([
            (["load()", "FileTests.a()", Self.runner], 250), (["save()", "FileTests.b()", Self.runner], 700),
            (["idle()"], 50),
        ])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts[0]?.share == 0.25)
        #expect(attribution.parts[0]?.report.samples.count == 1)
        #expect(attribution.parts[0]?.report.durationMilliseconds == 250)
        #expect(attribution.parts[0]?.report.culprit?.function == "load()")
        #expect(attribution.parts[1]?.report.culprit?.function == "save()")
        #expect(attribution.unknown?.part.share == 0.05)
    }

    @Test func `samples without a stack follow the others`() throws {
        let report = try Self.report([(["load()", "FileTests.a()", Self.runner], 600), (nil, 400)])
        let attribution = StallAttribution(report, among: Self.two)
        #expect(attribution.parts[0]?.share == 1)
        #expect(attribution.unknown == nil)
    }

    @Test func `without any stack the tests that ran decide`() throws {
        let report = try Self.report([(nil, 1_000)])
        let one = StallAttribution(report, among: [Self.candidate("FileTests.a()")])
        #expect(one.parts[0]?.share == 1)
        let two = StallAttribution(report, among: Self.two)
        #expect(two.unknown?.candidates == [0, 1])
    }

    @Test func `two cases of one test cannot be told apart`() throws {
        let report = try Self.report([(["load()", "FileTests.a()", Self.runner], 1_000)])
        let attribution = StallAttribution(
            report, among: [Self.candidate("FileTests.a()")] + Self.two)
        #expect(attribution.parts.isEmpty)
        #expect(attribution.unknown?.candidates == [0, 1])
    }

    @Test func `a test that ended before its stall is found on the stack`() throws {
        let report = try Self.report([(["load()", "closure #1 in FileTests.a()"], 1_000)])
        let attribution = StallAttribution(
            report, among: [Self.candidate("FileTests.a()", endedAfter: 5), Self.candidate("FileTests.b()")])
        #expect(attribution.parts.keys.sorted() == [0])
    }
}
