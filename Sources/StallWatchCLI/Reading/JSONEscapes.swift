/// The escapes in JSON's strings (RFC 8259, section 7).
enum JSONEscapes {
    /// The text that `content`, what is between the quotes, stands for.
    ///
    /// - Parameter position: Where the content begins, for faults.
    static func decode(_ content: ArraySlice<UInt8>, at position: Int) throws(JSONFault) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(content.count)
        var index = content.startIndex
        while index < content.endIndex {
            let byte = content[index]
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                result.append(byte)
                continue
            }
            guard index < content.endIndex else { throw fault(index) }
            let letter = content[index]
            index += 1
            switch letter {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): result.append(letter)
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0c)
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"): result += Array(try character(content, &index).utf8)
            default: throw fault(index - 1)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The character whose four digits come next, or four digits and those of its second half.
    private static func character(
        _ content: ArraySlice<UInt8>, _ index: inout Int
    ) throws(JSONFault) -> Unicode.Scalar {
        let first = try unit(content, &index)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(first), content[index...].prefix(2).elementsEqual("\\u".utf8) else {
            throw fault(index)
        }
        index += 2
        let second = try unit(content, &index)
        guard UTF16.isTrailSurrogate(second) else { throw fault(index) }
        return UTF16.decode((first, second))
    }

    private static func unit(_ content: ArraySlice<UInt8>, _ index: inout Int) throws(JSONFault) -> UInt16 {
        let digits = content[index...].prefix(4)
        guard digits.count == 4, digits.allSatisfy({ $0.isHexadecimalDigit }),
            let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw fault(index) }
        index += 4
        return unit
    }

    private static func fault(_ position: Int) -> JSONFault {
        JSONFault(position: position, reason: "an escape in a string is none of JSON's")
    }
}

extension UInt8 {
    fileprivate var isHexadecimalDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}

extension UTF16 {
    /// The character of two halves, which have to be a lead and a trail surrogate.
    fileprivate static func decode(_ halves: (lead: UInt16, trail: UInt16)) -> Unicode.Scalar {
        let value = 0x10000 + (UInt32(halves.lead & 0x3ff) << 10 | UInt32(halves.trail & 0x3ff))
        // 0x10000 to 0x10ffff: each of them is a character.
        return Unicode.Scalar(value) ?? "\u{fffd}"
    }
}
