import Testing

@testable import StallWatchCLI

@Suite struct OTLPSettingsTests {
    private func settings(
        _ url: String? = nil, headers: [String] = [], _ environment: [String: String] = [:],
        signal: OTLPSettings.Signal = .logs
    ) throws -> OTLPSettings {
        try OTLPSettings(signal, url: url, headers: headers, environment: environment)
    }

    @Test(arguments: [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/logs"),
        ("https://otlp.example.com/", "https://otlp.example.com/v1/logs"),
        ("https://example.com/otlp//", "https://example.com/otlp/v1/logs"),
        ("http://[::1]:4318/v1/logs", "http://[::1]:4318/v1/logs"),
    ])
    func theSignalsPathIsAdded(given: String, url: String) throws {
        #expect(try settings(given).url == url)
        #expect(try settings(nil, ["OTEL_EXPORTER_OTLP_ENDPOINT": given]).url == url)
    }

    @Test func theVariableOfOneSignalHasTheWholeURL() throws {
        let environment = [
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://b:2/custom",
        ]
        #expect(try settings(nil, environment).url == "http://b:2/custom")
        #expect(try settings(nil, environment, signal: .metrics).url == "http://a:1/v1/metrics")
        #expect(try settings("http://c:3", environment).url == "http://c:3/v1/logs")
    }

    @Test func anEmptyVariableCountsAsUnset() throws {
        let environment = ["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1"]
        #expect(try settings(nil, environment).url == "http://a:1/v1/logs")
    }

    @Test(arguments: [
        "", "127.0.0.1:4318", "ftp://a", "http://", "http:///v1", "http://a b", "http://a?x=1", "http://a#b",
    ])
    func aWrongURLIsNamed(url: String) throws {
        let error = #expect(throws: CommandFailure.self) { try settings(url) }
        #expect(error?.sentence.contains("--otlp is '\(url)'") == true)
        #expect(error?.status == .usage)
    }

    @Test func `without a collector, the error says how to name one`() {
        let error = #expect(throws: CommandFailure.self) { try settings() }
        #expect(error?.sentence.contains("--otlp") == true)
    }

    @Test func headersOfTheEnvironmentAreDecoded() throws {
        let found = try settings(
            "http://a", headers: ["x-token=a=b%20"], ["OTEL_EXPORTER_OTLP_HEADERS": "api-key = a%20b , tenant=7"])
        #expect(found.headers == ["api-key: a b", "tenant: 7", "x-token: a=b%20"])
    }

    @Test(arguments: ["novalue", "=1", "a b=1", "a:=1", "a=1\r\nEvil: 1"])
    func aWrongHeaderIsRefusedWithoutItsValue(header: String) {
        let error = #expect(throws: CommandFailure.self) { try settings("http://a", headers: [header]) }
        #expect(error?.sentence.contains("Evil") == false)
    }

    @Test func aLineBreakThatIsEncodedIsRefused() {
        #expect(throws: CommandFailure.self) {
            try settings("http://a", ["OTEL_EXPORTER_OTLP_HEADERS": "a=1%0d%0aEvil: 1"])
        }
    }

    @Test func otherVariables() throws {
        let found = try settings(
            "http://a",
            [
                "OTEL_EXPORTER_OTLP_TIMEOUT": "2500", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
                "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem", "OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE": "/logs.pem",
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/me.pem", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/me.key",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            ])
        #expect(found.timeoutMilliseconds == 2_500)
        #expect(found.isCompressed)
        #expect(found.authorities == "/logs.pem")
        #expect(found.certificate == "/me.pem")
        #expect(found.key == "/me.key")
    }

    @Test(arguments: [
        ("TIMEOUT", "0"), ("TIMEOUT", "10s"), ("COMPRESSION", "zstd"), ("PROTOCOL", "grpc"),
        ("LOGS_PROTOCOL", "http/json"),
    ])
    func aWrongVariableIsNamed(name: String, value: String) {
        let error = #expect(throws: CommandFailure.self) {
            try settings("http://a", ["OTEL_EXPORTER_OTLP_\(name)": value])
        }
        #expect(error?.sentence.hasPrefix("OTEL_EXPORTER_OTLP_\(name) is '\(value)'") == true)
    }

    @Test func resourceAttributesOfTheEnvironment() {
        let attributes = OTLPSettings.resourceAttributes([
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=prod%2Feu, service.name=a,broken,=x",
            "OTEL_SERVICE_NAME": "notes",
        ])
        #expect(attributes.values.map(\.key) == ["deployment.environment.name", "service.name"])
        #expect(attributes["deployment.environment.name"] == .text("prod/eu"))
        #expect(attributes["service.name"] == .text("notes"))
    }
}
