/// Writes messages in the Protocol Buffers wire format (protobuf.dev/programming-guides/encoding).
///
/// Only the three kinds of field that pprof's profile.proto has: whole numbers, strings and messages.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    /// A whole number; like every protobuf writer, leaves out a 0, which is what a missing field means.
    mutating func number(_ field: Int, _ value: Int) {
        number(field, UInt64(bitPattern: Int64(value)))
    }

    /// An address, which may need all 64 bits.
    mutating func number(_ field: Int, _ value: UInt64) {
        guard value != 0 else { return }
        tag(field, wireType: 0)
        varint(value)
    }

    /// A list of whole numbers, packed into one field.
    mutating func numbers(_ field: Int, _ values: [Int]) {
        guard !values.isEmpty else { return }
        var packed = ProtobufWriter()
        for value in values { packed.varint(UInt64(bitPattern: Int64(value))) }
        delimited(field, packed.bytes)
    }

    /// A string; also an empty one, whose place in a list counts.
    mutating func string(_ field: Int, _ value: String) {
        delimited(field, Array(value.utf8))
    }

    mutating func message(_ field: Int, _ body: (inout ProtobufWriter) -> Void) {
        var message = ProtobufWriter()
        body(&message)
        delimited(field, message.bytes)
    }

    private mutating func delimited(_ field: Int, _ contents: [UInt8]) {
        tag(field, wireType: 2)
        varint(UInt64(contents.count))
        bytes += contents
    }

    private mutating func tag(_ field: Int, wireType: UInt64) {
        varint(UInt64(field) << 3 | wireType)
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
