import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct StallMonitorConfigurationTests {
    @Test func `the defaults are a quarter of a second and ten seconds, which can be turned off`() {
        let configuration = StallMonitor.Configuration()
        #expect(configuration.threshold == .milliseconds(250))
        #expect(
            configuration.watchdogOptions
                == WatchdogOptions(
                    saturationThreshold: 10_000_000_000, modeRule: .init(limit: 1_000_000_000),
                    pinnedThreshold: 1_000_000_000))
        #expect(
            StallMonitor.Configuration(detection: .init(saturationThreshold: nil)).watchdogOptions
                == WatchdogOptions(modeRule: .init(limit: 1_000_000_000), pinnedThreshold: 1_000_000_000))
    }

    @Test(
        arguments: [
            (.milliseconds(5), 5_000_000), (.nanoseconds(5_000_001), 5_000_001), (.seconds(1.5), 1_500_000_000),
            (.seconds(24 * 60 * 60), 86_400_000_000_000),
        ] as [(Duration, UInt64)])
    func aThresholdInRangeIsExactToTheNanosecond(duration: Duration, nanoseconds: UInt64) throws {
        try StallMonitor.Configuration.check(duration)
        #expect(LinuxSupport.nanoseconds(duration) == nanoseconds)
    }

    @Test(
        arguments: [
            .zero, .milliseconds(-250), .nanoseconds(4_999_999), .seconds(24 * 60 * 60) + .nanoseconds(1),
            .seconds(Int64.max), .seconds(Int64.min),
        ] as [Duration])
    func theErrorNamesAThresholdOutOfRange(duration: Duration) {
        let error = #expect(throws: StallWatchError.self) {
            try StallMonitor.Configuration.check(duration)
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains("\(duration)") == true)
        #expect(error?.message.contains("5 milliseconds to 24 hours") == true)
    }

    @Test(
        arguments: [
            (.init(saturationThreshold: .zero), "the saturationThreshold is 0.0 seconds: "),
            (.init(pinnedThreshold: .zero), "the pinnedThreshold is 0.0 seconds: "),
            (.init(modeStarvation: .init(limit: .zero)), "the limit of modeStarvation is 0.0 seconds: "),
        ] as [(StallMonitor.Configuration.Detection, String)])
    func `a refused duration is named, and how to turn it off`(
        detection: StallMonitor.Configuration.Detection, words: String
    ) {
        let error = #expect(throws: StallWatchError.self) {
            try StallMonitor.Configuration(outputs: [], detection: detection).check()
        }
        #expect(error?.message == words + "give a value from 5 milliseconds to 24 hours, or nil to turn it off")
    }

    /// The app may change its directory, as a daemon does.
    @Test func `the place of an output is fixed when the monitor is made`() throws {
        let path = try #require(absolutePath("stalls"))
        let configuration = StallMonitor.Configuration(
            outputs: [.directory("stalls"), .statistics("stalls"), .terminationLog("stalls")])
        #expect(configuration.directory == path && path.hasPrefix("/"))
        #expect(configuration.statisticsFiles.map(\.path) == [path] && configuration.terminationLog?.path == path)
    }

    @Test(arguments: [Duration.zero, .milliseconds(100)])
    func `a monitor with an invalid threshold creates no directory`(threshold: Duration) throws {
        let temporary = try TemporaryDirectory()
        let configuration = StallMonitor.Configuration(
            threshold: threshold, outputs: [.directory(temporary.path + "/new")],
            detection: .init(saturationThreshold: threshold == .zero ? nil : .zero))
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
        #expect(error?.code == .invalidConfiguration)
        #expect(temporary.names.isEmpty)
    }

    private typealias Health = StallMonitor.Configuration.Health

    @Test(
        arguments: [
            (Health(path: ""), "the health file's path is empty: name a file"),
            (
                Health(path: "health", interval: .milliseconds(99)),
                "the interval of the health file is 0.099 seconds: give a value from 100 milliseconds to 1 hour"
            ),
            (
                Health(path: "health", interval: .seconds(3_601)),
                "the interval of the health file is \(Duration.seconds(3_601)): give a value from 100 milliseconds to 1 hour"
            ),
            (
                Health(notifiesSystemd: false),
                "health has neither a path nor notifiesSystemd: set one of them, or set health to nil"
            ),
        ])
    private func `a wrong health output is refused`(health: Health, message: String) {
        var configuration = StallMonitor.Configuration(outputs: [])
        configuration.health = health
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message == message)
    }

    @Test func `a termination log needs an escalation`() throws {
        var configuration = StallMonitor.Configuration(outputs: [])
        configuration.outputs.append(.terminationLog("log"))
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
        #expect(error?.message == "a termination log is only written when a stall escalates: set escalation, too")
        configuration.escalation = .abort(afterThresholds: 5)
        _ = try StallMonitor(configuration)
        configuration.outputs.append(.terminationLog(""))
        #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
    }

    @Test func `statistics need a file`() {
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(.init(outputs: [.statistics("")])) }
        #expect(error?.message == "the path of the statistics is empty: name a file")
    }
}

@Suite struct StallContextTests {
    private let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test func `a context has what it was made of`() {
        let context = StallContext("GET /feed", ["a": "1"], traceID: trace.uppercased(), spanID: "00f067aa0ba902b7")
        #expect(context.label == "GET /feed" && context.attributes == ["a": "1"])
        #expect(context.traceID == trace && context.spanID == "00f067aa0ba902b7")
        #expect(StallContext("x").traceID == nil && StallContext("x").attributes.isEmpty)
    }

    @Test func `a scope is the current context and ends with its function`() async throws {
        #expect(StallContext.current == nil)
        let inherited = withStallContext("outer") {
            withStallContext("inner") { #expect(StallContext.current?.label == "inner") }
            #expect(StallContext.current?.label == "outer")
            return Task { StallContext.current?.label }
        }
        #expect(StallContext.current == nil)
        #expect(await inherited.value == "outer")
        struct Failure: Error {}
        #expect(throws: Failure.self) { try withStallContext("fails") { throw Failure() } }
        #expect(StallContext.current == nil)
    }

    private func label(_ bytes: [UInt8]) -> (String, isCut: Bool) {
        let text = (bytes + [0]).map { CChar(bitPattern: $0) }
        let payload = StallContext(label: text, traceID: nil, spanID: nil).storage.payload
        return (payload.label, payload.isCut)
    }

    @Test func `a text of C is cut where it is no UTF-8 or too long`() {
        #expect(label([]) == ("", false))
        #expect(label(Array("import".utf8)) == ("import", false))
        #expect(label([0x61, 0xff, 0x62]) == ("a", true))
        // A character without its end, an overlong one, and a surrogate.
        #expect(label([0x61, 0xc3]) == ("a", true))
        #expect(label([0x61, 0xc0, 0x80]) == ("a", true))
        #expect(label([0x61, 0xed, 0xa0, 0x80]) == ("a", true))
        let long = Array(repeating: UInt8(ascii: "x"), count: 128)
        #expect(label(long) == (String(repeating: "x", count: 128), false))
        #expect(label(long + [0x79]) == (String(repeating: "x", count: 128), true))
        // The limit is within a character of four bytes.
        #expect(label(Array(long.dropLast(2)) + Array("😀".utf8)) == (String(repeating: "x", count: 126), true))
        #expect(StallContext(label: nil, traceID: nil, spanID: nil).label == "")
    }

    @Test func `the functions for C may be called in any order`() {
        stallwatchPopContext()
        stallwatchPushContext(nil, nil, nil)
        stallwatchPushContext("inner", trace, "short")
        stallwatchPopContext()
        stallwatchPopContext()
        stallwatchPopContext()
    }
}

@Suite struct PropagatedSpanTests {
    private let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private let span = "00f067aa0ba902b7"

    @Test func `the ids are found in each kind of header`() {
        let headers: [[String: String]] = [
            ["traceparent": "00-\(trace)-\(span)-01"], ["traceparent": "cc-\(trace)-\(span)-01-later"],
            ["b3": "\(trace)-\(span)"], ["b3": "\(trace)-\(span)-1-05e3ac9a4f6e3b90"],
            ["x-b3-traceid": trace, "x-b3-spanid": span, "x-b3-sampled": "1"],
        ]
        for headers in headers {
            let found = PropagatedSpan(headers: headers)
            #expect(found?.traceID == trace && found?.spanID == span, "\(headers)")
        }
        let short = PropagatedSpan(headers: ["b3": "a3ce929d0e0e4736-\(span)"])
        #expect(short?.traceID == "0000000000000000a3ce929d0e0e4736")
    }

    @Test func `other headers have none`() {
        for headers in [[:], ["traceparent": ""], ["b3": "0"], ["x-b3-traceid": trace], ["uber-trace-id": trace]] {
            #expect(PropagatedSpan(headers: headers) == nil, "\(headers)")
        }
        // What is in the place of an id and is none, the context ignores.
        let odd = PropagatedSpan(headers: ["traceparent": "00-not-an-id"])
        #expect(StallContext("x", traceID: odd?.traceID, spanID: odd?.spanID).traceID == nil)
    }
}

#if Tracing
    import Tracing

    @Suite struct StallContextTracingTests {
        private struct HeaderTracer: Instrument {
            func extract<Carrier, Extract: Extractor>(
                _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
            ) where Extract.Carrier == Carrier {}

            func inject<Carrier, Inject: Injector>(
                _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
            ) where Inject.Carrier == Carrier {
                guard let span = context[SpanKey.self] else { return }
                injector.inject("00-4bf92f3577b34da6a3ce929d0e0e4736-\(span)-01", forKey: "TraceParent", into: &carrier)
            }
        }

        private enum SpanKey: ServiceContextKey {
            typealias Value = String
        }

        @Test func `a context has the ids of the span`() {
            var service = ServiceContext.topLevel
            service[SpanKey.self] = "00f067aa0ba902b7"
            let context = StallContext("GET /feed", ["a": "1"], tracing: service, instrument: HeaderTracer())
            #expect(context.label == "GET /feed" && context.attributes == ["a": "1"])
            #expect(context.traceID == "4bf92f3577b34da6a3ce929d0e0e4736" && context.spanID == "00f067aa0ba902b7")
        }

        @Test func `without a span or a tracer there are none`() {
            #expect(StallContext("x", [:], tracing: .topLevel, instrument: HeaderTracer()).traceID == nil)
            #expect(StallContext("x", [:], tracing: nil, instrument: HeaderTracer()).traceID == nil)
            #expect(StallContext("x", tracing: .topLevel).traceID == nil)
        }
    }
#endif
