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
            case 1:
                guard let value = fixed(&rest, bytes: 8) else { return nil }
                fields.append((field, .number(value)))
            case 5:
                guard let value = fixed(&rest, bytes: 4) else { return nil }
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
