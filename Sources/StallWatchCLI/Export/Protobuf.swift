/// Writes messages in the Protocol Buffers wire format (protobuf.dev/programming-guides/encoding).
///
/// Only the kinds of field that pprof's profile.proto and OTLP's messages have.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    /// A whole number; like every protobuf writer, leaves out a 0, which is what a missing field means.
    mutating func number(_ field: Int, _ value: Int) { if value != 0 { choice(field, value) } }

    /// An address, which may need all 64 bits.
    mutating func number(_ field: Int, _ value: UInt64) { number(field, Int(truncatingIfNeeded: value)) }

    /// A whole number that is written even if it is 0: one of several alternatives (`oneof`), or of an optional field.
    mutating func choice(_ field: Int, _ value: Int) {
        tag(field, wireType: 0)
        varint(UInt64(bitPattern: Int64(value)))
    }

    /// A number of 64 bits with a fixed length (fixed64, sfixed64), which is written even if it is 0.
    mutating func fixed(_ field: Int, _ value: UInt64) {
        tag(field, wireType: 1)
        fixed(value)
    }

    /// A double, which is written even if it is 0.
    mutating func double(_ field: Int, _ value: Double) { fixed(field, value.bitPattern) }

    /// A list of numbers with a fixed length (fixed64), packed into one field.
    mutating func fixed(_ field: Int, _ values: [UInt64]) {
        guard !values.isEmpty else { return }
        message(field) { for value in values { $0.fixed(value) } }
    }

    /// A list of whole numbers, packed into one field.
    mutating func numbers(_ field: Int, _ values: [Int]) {
        guard !values.isEmpty else { return }
        message(field) { for value in values { $0.varint(UInt64(bitPattern: Int64(value))) } }
    }

    /// Writes a string, even an empty one: an element of a list keeps its place.
    mutating func string(_ field: Int, _ value: String) {
        data(field, Array(value.utf8))
    }

    mutating func message(_ field: Int, _ body: (inout ProtobufWriter) -> Void) {
        var message = ProtobufWriter()
        body(&message)
        data(field, message.bytes)
    }

    /// A message with whole numbers in its fields 1, 2 and so on.
    mutating func message(_ field: Int, numbers: Int...) {
        message(field) { for (index, number) in numbers.enumerated() { $0.number(index + 1, number) } }
    }

    /// Bytes, or a message that has been written.
    mutating func data(_ field: Int, _ contents: [UInt8]) {
        tag(field, wireType: 2)
        varint(UInt64(contents.count))
        bytes += contents
    }

    private mutating func tag(_ field: Int, wireType: UInt64) {
        varint(UInt64(field) << 3 | wireType)
    }

    private mutating func fixed(_ value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }

    private mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

/// Reads the fields of a message in the Protocol Buffers wire format.
enum ProtobufReader {
    enum Value: Equatable {
        case number(UInt64)
        case data([UInt8])
    }

    /// The fields in the order of the message; `nil` if it breaks off or is no message.
    static func fields(_ bytes: [UInt8]) -> [(Int, Value)]? {
        var fields: [(Int, Value)] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let tag = varint(&rest), let field = Int(exactly: tag >> 3), field > 0 else { return nil }
            switch tag & 7 {
            case 0:
                guard let value = varint(&rest) else { return nil }
                fields.append((field, .number(value)))
            case 1, 5:
                guard let value = fixed(&rest, bytes: tag & 7 == 1 ? 8 : 4) else { return nil }
                fields.append((field, .number(value)))
            case 2:
                guard let length = varint(&rest), length <= UInt64(rest.count) else { return nil }
                fields.append((field, .data(Array(rest.prefix(Int(length))))))
                rest = rest.dropFirst(Int(length))
            default: return nil
            }
        }
        return fields
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7f) << shift
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }

    private static func fixed(_ rest: inout ArraySlice<UInt8>, bytes: Int) -> UInt64? {
        guard rest.count >= bytes else { return nil }
        let value = rest.prefix(bytes).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(bytes)
        return value
    }
}
