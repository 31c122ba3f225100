import StallReports

/// Attributes of an OTLP message, in the order in which they were set: the message `KeyValue` of common.proto.
struct OTLPAttributes: Sendable, Hashable {
    enum Value: Sendable, Hashable {
        case text(String)
        case integer(Int)
        case number(Double)
    }

    struct Attribute: Sendable, Hashable {
        var key: String
        var value: Value
    }

    private(set) var values: [Attribute] = []
    private var places: [String: Int] = [:]

    /// An attribute's value; setting `nil` changes nothing.
    subscript(key: String) -> Value? {
        get { places[key].map { values[$0].value } }
        set {
            guard let newValue else { return }
            if let place = places[key] {
                values[place].value = newValue
            } else {
                places[key] = values.count
                values.append(Attribute(key: key, value: newValue))
            }
        }
    }

    mutating func set(_ key: String, _ text: String?) { self[key] = text.map(Value.text) }
    mutating func set(_ key: String, _ integer: Int?) { self[key] = integer.map(Value.integer) }
    mutating func set(_ key: String, _ number: Double?) { self[key] = number.map(Value.number) }

    /// Writes each attribute as field `field` of a message.
    func write(_ field: Int, to writer: inout ProtobufWriter) {
        for attribute in values {
            writer.message(field) { pair in
                pair.string(1, attribute.key)
                pair.message(2) { $0.value(attribute.value) }
            }
        }
    }
}

extension OTLPAttributes {
    /// The process of a report, as the message `Resource` has it.
    ///
    /// `common` are attributes of all reports, from the environment. The report's own take precedence, except the service's
    /// name, which is the process's name only if nothing else names it.
    init(of report: StallReport, common: OTLPAttributes = OTLPAttributes()) {
        let process = report.process
        let metadata = report.metadata
        self = common
        set("service.name", metadata["service.name"])
        if self["service.name"] == nil { set("service.name", process.name) }
        set("service.version", metadata["service.version"] ?? metadata["version"])
        set("host.name", process.hostname)
        // The conventions' words for the architectures of uname(2).
        set("host.arch", ["x86_64": "amd64", "aarch64": "arm64"][process.architecture] ?? process.architecture)
        set("os.type", "linux")
        set("os.description", process.operatingSystem)
        set("os.version", process.kernel)
        set("process.pid", Int(process.pid))
        set("process.executable.name", process.name)
        set("process.executable.path", process.executable.isEmpty ? nil : process.executable)
        set("process.creation.time", process.startedAt?.description)
        set("stallwatch.boot_id", process.bootID)
    }
}

extension ProtobufWriter {
    /// The fields of the message `AnyValue`.
    mutating func value(_ value: OTLPAttributes.Value) {
        switch value {
        case .text(let text): string(1, text)
        case .integer(let integer): choice(3, integer)
        case .number(let number): double(4, number)
        }
    }
}
