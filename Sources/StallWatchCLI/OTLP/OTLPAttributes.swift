/// Attributes of an OTLP message, in the order in which they were set: the message `KeyValue` of common.proto.
struct OTLPAttributes: Sendable, Hashable {
    enum Value: Sendable, Hashable {
        case text(String)
        case integer(Int)
        case number(Double)
        case flag(Bool)
    }

    private(set) var values: [(key: String, value: Value)] = []
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
                values.append((key, newValue))
            }
        }
    }

    mutating func set(_ key: String, _ text: String?) { self[key] = text.map(Value.text) }
    mutating func set(_ key: String, _ integer: Int?) { self[key] = integer.map(Value.integer) }
    mutating func set(_ key: String, _ number: Double?) { self[key] = number.map(Value.number) }

    /// Writes each attribute as field `field` of a message.
    func write(_ field: Int, to writer: inout ProtobufWriter) {
        for (key, value) in values {
            writer.message(field) { pair in
                pair.string(1, key)
                pair.message(2) { $0.value(value) }
            }
        }
    }

    static func == (left: OTLPAttributes, right: OTLPAttributes) -> Bool {
        left.values.elementsEqual(right.values) { $0 == $1 }
    }

    func hash(into hasher: inout Hasher) {
        for (key, value) in values {
            hasher.combine(key)
            hasher.combine(value)
        }
    }
}

extension ProtobufWriter {
    /// The fields of the message `AnyValue`.
    mutating func value(_ value: OTLPAttributes.Value) {
        switch value {
        case .text(let text): string(1, text)
        case .flag(let flag): choice(2, flag ? 1 : 0)
        case .integer(let integer): choice(3, integer)
        case .number(let number): double(4, number)
        }
    }
}
