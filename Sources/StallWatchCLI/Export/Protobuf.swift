/// The fields of pprof in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding).
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    /// A whole number; like every protobuf writer, leaves out a 0, which is what a missing field means.
    mutating func number(_ field: Int, _ value: Int) {
        guard value != 0 else { return }
        tag(field, wireType: 0)
        varint(UInt64(bitPattern: Int64(value)))
    }

    /// An address, which may need all 64 bits.
    mutating func number(_ field: Int, _ value: UInt64) { number(field, Int(truncatingIfNeeded: value)) }

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

    private mutating func data(_ field: Int, _ contents: [UInt8]) {
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
