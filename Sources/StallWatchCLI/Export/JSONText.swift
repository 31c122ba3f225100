/// A JSON writer.
///
/// Foundation's encoder first makes an object for every number. With the millions of numbers in a profile, that takes tens
/// of seconds.
struct JSONText {
    private(set) var bytes: [UInt8] = []

    /// A JSON value that these formats use.
    enum Value {
        case null
        case bool(Bool)
        case int(Int)
        case string(String)
        case array([Value])
        case object([(String, Value)])
        /// A column of numbers, stored as one value.
        case ints([Int])
        /// Indices; a missing one is written as null.
        case indices([Int?])
        case strings([String])
        /// Milliseconds with three decimals, from microseconds.
        case milliseconds([Int])

        static func optional(_ text: String?) -> Value { text.map { .string($0) } ?? .null }

        static func optional(_ number: Int32?) -> Value { number.map { .int(Int($0)) } ?? .null }
    }

    /// Encodes `value`.
    ///
    /// With `escapesMarkup`, `<`, `>` and `&` are escaped too. The text is then safe in a `<script>` element of HTML, which
    /// ends at the first `</script`.
    init(_ value: Value, escapesMarkup: Bool = false) {
        self.escapesMarkup = escapesMarkup
        append(value)
    }

    private let escapesMarkup: Bool

    private mutating func append(_ value: Value) {
        switch value {
        case .null: append("null")
        case .bool(let value): append(value ? "true" : "false")
        case .int(let value): append(String(value))
        case .string(let text): append(quoted: text)
        case .array(let items): list(items) { $0.append($1) }
        case .ints(let items): list(items) { $0.append(String($1)) }
        case .indices(let items): list(items) { $0.append($1.map(String.init) ?? "null") }
        case .strings(let items): list(items) { $0.append(quoted: $1) }
        case .milliseconds(let items): list(items) { $0.append(milliseconds: $1) }
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, (name, value)) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(quoted: name)
                bytes.append(UInt8(ascii: ":"))
                append(value)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private mutating func list<Item>(_ items: [Item], _ body: (inout JSONText, Item) -> Void) {
        bytes.append(UInt8(ascii: "["))
        for (index, item) in items.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            body(&self, item)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// Formats microseconds exactly as milliseconds (`1500` becomes `1.5`), where a division could give 17 digits.
    private mutating func append(milliseconds microseconds: Int) {
        let (whole, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000)
        append(microseconds < 0 && whole == 0 ? "-0" : String(whole))
        guard rest != 0 else { return }
        var digits = String(rest.magnitude + 1_000).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        append("." + digits)
    }

    private mutating func append(quoted text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0..<0x20, 0x7f: append(escaped: byte)
            case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "&"):
                if escapesMarkup { append(escaped: byte) } else { bytes.append(byte) }
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func append(escaped byte: UInt8) {
        let digits = String(byte, radix: 16)
        append("\\u" + String(repeating: "0", count: 4 - digits.count) + digits)
    }
}

extension JSONText.Value: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral text: String) { self = .string(text) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .int(value) }
    init(arrayLiteral items: Self...) { self = .array(items) }
    /// The members keep their order.
    init(dictionaryLiteral members: (String, Self)...) { self = .object(members) }
}
