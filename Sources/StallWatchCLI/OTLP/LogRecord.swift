/// A log record of OpenTelemetry: the message `LogRecord` of logs.proto (opentelemetry-proto 1.10).
struct LogRecord: Sendable, Equatable {
    /// The severities that reports have, with their numbers.
    enum Severity: Int, Sendable {
        case warning = 13
        case error = 17

        fileprivate var text: String { self == .warning ? "WARN" : "ERROR" }
    }

    /// Nanoseconds since 1970.
    var time: UInt64
    var severity: Severity
    var eventName: String
    var body: String
    var attributes: OTLPAttributes
    /// 16 bytes, or none.
    var traceID: [UInt8] = []
    /// 8 bytes, or none.
    var spanID: [UInt8] = []

    /// The record as a message.
    func bytes() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.fixed(1, time)
        writer.number(2, severity.rawValue)
        writer.string(3, severity.text)
        writer.message(5) { $0.string(1, body) }
        attributes.write(6, to: &writer)
        if !traceID.isEmpty { writer.data(9, traceID) }
        if !spanID.isEmpty { writer.data(10, spanID) }
        // The time at which the record was first seen. The same for each try, so that repeated records are equal.
        writer.fixed(11, time)
        writer.string(12, eventName)
        return writer.bytes
    }
}
