/// A JSON document as it is, for what asks about its shape.
enum JSONValue: Sendable, Equatable {
    case null
    case boolean(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Reads a document.
    ///
    /// - Throws: What is wrong with it.
    init(json: [UInt8]) throws(JSONFault) {
        var scanner = JSONScanner(json)
        self = try scanner.value()
        try scanner.end()
    }

    /// As it is written, cut where it is long.
    var excerpt: String {
        let text: String
        switch self {
        case .null: text = "null"
        case .boolean(let value): text = "\(value)"
        case .number(let value):
            text = value == value.rounded() && value.magnitude < 1e15 ? "\(Int(value))" : "\(value)"
        case .string(let value): text = "\"\(value)\""
        case .array(let values): text = "an array of \(counted(values.count, "element", "elements"))"
        case .object(let fields): text = "an object of \(counted(fields.count, "field", "fields"))"
        }
        return text.truncated(to: 80)
    }
}

extension JSONScanner {
    /// The next value, whatever it is.
    mutating func value(depth: Int = 0) throws(JSONFault) -> JSONValue {
        skipBlanks()
        guard depth < Self.maximumDepth else { throw JSONFault(position: position, reason: "it is nested too deeply") }
        switch nextByte {
        case UInt8(ascii: "{"):
            var fields: [String: JSONValue] = [:]
            try beginObject()
            while let key = try nextKey() { fields[key] = try value(depth: depth + 1) }
            return .object(fields)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            try beginArray()
            while try nextElement() { elements.append(try value(depth: depth + 1)) }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"), UInt8(ascii: "f"):
            let isTrue = nextByte == UInt8(ascii: "t")
            try skipValue()
            return .boolean(isTrue)
        case UInt8(ascii: "n"):
            try skipValue()
            return .null
        default: return .number(try number())
        }
    }
}
