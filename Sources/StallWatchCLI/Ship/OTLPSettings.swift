import TextOutput
import Foundation

/// Where OTLP goes and how: the command line, and the variables of OpenTelemetry's specification.
///
/// The variables of one signal (`OTEL_EXPORTER_OTLP_LOGS_…`) win over those of all (`OTEL_EXPORTER_OTLP_…`), and the command
/// line over both (opentelemetry.io/docs/specs/otel/protocol/exporter).
struct OTLPSettings: Sendable, Equatable {
    /// A kind of data, with its path at the collector.
    enum Signal: String, Sendable {
        case logs, metrics
    }

    var url: String
    /// Lines of the request, `name: value`.
    var headers: [String] = []
    /// By default that of the specification.
    var timeoutMilliseconds = 10_000
    var isCompressed = false
    /// Paths of PEM files.
    var authorities: String?
    var certificate: String?
    var key: String?

    private static let timeouts = 1...3_600_000

    /// Takes a collector's URL, to which the signal's path is added, and headers as `name=value` from the command line.
    init(_ signal: Signal, url: String?, headers: [String] = [], environment: [String: String]) throws(CommandFailure) {
        func variable(_ name: String) -> (name: String, value: String)? {
            // An empty variable counts as unset (specification, "Parsing empty value").
            for full in ["OTEL_EXPORTER_OTLP_\(signal.rawValue.uppercased())_\(name)", "OTEL_EXPORTER_OTLP_\(name)"] {
                if let value = environment[full], !value.isEmpty { return (full, value) }
            }
            return nil
        }
        self.url = try Self.endpoint(signal, url: url, variable("ENDPOINT"))
        if let (name, word) = variable("PROTOCOL"), word != "http/protobuf" {
            throw CommandFailure(
                .usage,
                "\(name) is '\(word)', but ship speaks http/protobuf. Set it to that, and the port to the one for HTTP."
            )
        }
        for part in variable("HEADERS").map({ $0.value.split(separator: ",") }) ?? [] {
            self.headers.append(try Self.header(String(part), in: "OTEL_EXPORTER_OTLP_HEADERS", isEncoded: true))
        }
        for text in headers { self.headers.append(try Self.header(text, in: "--header", isEncoded: false)) }
        if let (name, text) = variable("TIMEOUT") {
            guard let milliseconds = Int(text), Self.timeouts.contains(milliseconds) else {
                throw CommandFailure(
                    .usage, "\(name) is '\(text)', but has to be a number of milliseconds from 1 to 3600000.")
            }
            timeoutMilliseconds = milliseconds
        }
        if let (name, word) = variable("COMPRESSION") {
            guard ["gzip", "none"].contains(word) else {
                throw CommandFailure(.usage, "\(name) is '\(word)', but has to be gzip or none.")
            }
            isCompressed = word == "gzip"
        }
        authorities = variable("CERTIFICATE")?.value
        certificate = variable("CLIENT_CERTIFICATE")?.value
        key = variable("CLIENT_KEY")?.value
    }

    private static func endpoint(
        _ signal: Signal, url: String?, _ variable: (name: String, value: String)?
    ) throws(CommandFailure) -> String {
        guard let (name, text) = url.map({ ("--otlp", $0) }) ?? variable else {
            throw CommandFailure(
                .usage, "There is no collector: give its URL with --otlp, or set OTEL_EXPORTER_OTLP_ENDPOINT.")
        }
        let parts = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, ["http:", "https:"].contains(parts[0].lowercased()), parts[1].isEmpty,
            parts[2].first.map({ $0 != "/" }) == true,
            !text.contains(where: { $0.isWhitespace || $0 == "?" || $0 == "#" })
        else {
            throw CommandFailure(
                .usage, "\(name) is '\(text.printable)', but has to be a URL such as http://127.0.0.1:4318.")
        }
        // The variable of one signal has the whole URL.
        if name.contains("_\(signal.rawValue.uppercased())_") { return text }
        let path = "/v1/\(signal.rawValue)"
        let base = String(text.reversed().drop { $0 == "/" }.reversed())
        return base.hasSuffix(path) ? base : base + path
    }

    private static func header(_ text: String, in source: String, isEncoded: Bool) throws(CommandFailure) -> String {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0]).trimmed
        guard parts.count == 2, !name.isEmpty, name.utf8.allSatisfy({ tokenBytes.contains($0) }) else {
            // The value may be a secret.
            throw CommandFailure(.usage, "\(source) has to be name=value, such as api-key=1234.")
        }
        let value = String(parts[1]).trimmed
        let decoded = isEncoded ? value.removingPercentEncoding ?? value : value
        guard !decoded.contains(where: \.isNewline) else {
            throw CommandFailure(
                .usage, "\(source): the value of '\(name)' has a line break, which a header cannot have.")
        }
        return "\(name): \(decoded)"
    }

    /// The bytes of a header's name (RFC 9110, section 5.6.2).
    private static let tokenBytes = Set(
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    /// The resource attributes that the environment sets: `OTEL_RESOURCE_ATTRIBUTES`, and `OTEL_SERVICE_NAME`, which wins.
    static func resourceAttributes(_ environment: [String: String]) -> OTLPAttributes {
        var attributes = OTLPAttributes()
        for pair in (environment["OTEL_RESOURCE_ATTRIBUTES"] ?? "").split(separator: ",") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !String(parts[0]).trimmed.isEmpty else { continue }
            let value = String(parts[1]).trimmed
            attributes.set(String(parts[0]).trimmed, value.removingPercentEncoding ?? value)
        }
        if let service = environment["OTEL_SERVICE_NAME"], !service.isEmpty { attributes.set("service.name", service) }
        return attributes
    }
}
