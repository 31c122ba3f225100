enum JSONValue: Encodable {
    case null
    case bool(Bool)
    case int(Int)
    case string(String)
    case array([JSONValue])
    case object([(String, JSONValue)])
    case ints([Int])
    /// Indices; a missing one is written as null.
    case indices([Int?])
    case strings([String])
    /// Milliseconds, from microseconds.
    case milliseconds([Int])

    static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

    static func optional(_ number: Int32?) -> JSONValue { number.map { .int(Int($0)) } ?? .null }

    func encode(to encoder: any Encoder) throws {
        if case .object(let members) = self {
            var fields = encoder.container(keyedBy: MemberName.self)
            for (name, value) in members { try fields.encode(value, forKey: MemberName(stringValue: name)) }
            return
        }
        var container = encoder.singleValueContainer()
        switch self {
        case .null, .object: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .int(let value): try container.encode(value)
        case .string(let text): try container.encode(text)
        case .array(let items): try container.encode(items)
        case .ints(let items): try container.encode(items)
        case .indices(let items): try container.encode(items)
        case .strings(let items): try container.encode(items)
        case .milliseconds(let items): try container.encode(items.map { Double($0) / 1_000 })
        }
    }

    private struct MemberName: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral text: String) { self = .string(text) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .int(value) }
    init(arrayLiteral items: Self...) { self = .array(items) }
    init(dictionaryLiteral members: (String, Self)...) { self = .object(members) }
}
