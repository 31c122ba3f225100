/// The bytes of a context that the app publishes: a fixed-size block that the watchdog copies from a thread.
///
/// The block is written before it is published, and never changed. A checksum proves that a copy is whole and that it is
/// a context at all. Numbers are in the machine's byte order, because no other machine reads them.
///
/// | bytes | contents |
/// | --- | --- |
/// | 0 to 3 | ``magic`` |
/// | 4 to 5 | ``version`` |
/// | 6 to 7 | the number of bytes in use, all of these included |
/// | 8 to 11 | the checksum of the bytes in use from 12 on |
/// | 12 | ``Flags`` |
/// | 13 | the label's length |
/// | 14 | the number of attributes |
/// | 15 | the number of attributes that were left out, at most 255 |
/// | 16 to 31 | the trace id |
/// | 32 to 39 | the span id |
/// | 40 on | the label; then of each attribute the two lengths, the key and the value |
package struct ContextPayload: Sendable, Equatable {
    package static let byteCount = 1_024
    /// The longest label, in bytes of UTF-8.
    package static let maximumLabel = StallReport.Context.maximumText
    package static let maximumAttributes = StallReport.Context.maximumAttributes
    /// The longest key of an attribute, in bytes of UTF-8.
    package static let maximumKey = 32
    /// The longest value of an attribute, in bytes of UTF-8.
    package static let maximumValue = 64

    /// "SWCX".
    static let magic: UInt32 = 0x5843_5753
    static let version: UInt16 = 1
    static let headByteCount = 40

    private struct Flags {
        static let isCut: UInt8 = 1
        static let hasTrace: UInt8 = 2
        static let hasSpan: UInt8 = 4
    }

    package var label: String
    /// The attributes, sorted by key.
    package var attributes: [(key: String, value: String)]
    /// 16 bytes, or `nil`.
    package var traceID: [UInt8]?
    /// 8 bytes, or `nil`.
    package var spanID: [UInt8]?
    package var isCut: Bool
    package var omittedAttributes: Int

    /// Creates a payload within the limits: longer texts are cut.
    ///
    /// Of more attributes, those with the first keys are kept. An id is 32 or 16 hexadecimal digits, not all zeros.
    package init(
        label: String, attributes: [String: String] = [:], traceID: String? = nil, spanID: String? = nil,
        isCut: Bool = false
    ) {
        var isCut = isCut
        func cut(_ text: String, _ limit: Int) -> String {
            let short = text.prefix(utf8: limit)
            if short.utf8.count < text.utf8.count { isCut = true }
            return short
        }
        self.label = cut(label, Self.maximumLabel)
        let kept = attributes.sorted { $0.key < $1.key }.prefix(Self.maximumAttributes)
        self.attributes = kept.map { (cut($0.key, Self.maximumKey), cut($0.value, Self.maximumValue)) }
        self.traceID = traceID.flatMap { Self.identifier($0, byteCount: 16) }
        self.spanID = spanID.flatMap { Self.identifier($0, byteCount: 8) }
        self.isCut = isCut
        omittedAttributes = attributes.count - kept.count
    }

    /// Returns the bytes of an id in hexadecimal; `nil` for another length, another text, or all zeros.
    package static func identifier(_ text: String, byteCount: Int) -> [UInt8]? {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard text.utf8.count == 2 * byteCount, digits.count == 2 * byteCount else { return nil }
        let bytes: [UInt8] = (0..<byteCount).map { index in UInt8(16 * digits[2 * index] + digits[2 * index + 1]) }
        return bytes.contains { $0 != 0 } ? bytes : nil
    }

    package static func == (one: Self, other: Self) -> Bool { one.bytes == other.bytes }

    // MARK: - Bytes

    /// The bytes in use: at most ``byteCount``.
    package var bytes: [UInt8] {
        var flags: UInt8 = isCut ? Flags.isCut : 0
        if traceID != nil { flags |= Flags.hasTrace }
        if spanID != nil { flags |= Flags.hasSpan }
        let omitted = UInt8(clamping: omittedAttributes)
        var body: [UInt8] = [flags, UInt8(label.utf8.count), UInt8(attributes.count), omitted]
        body += traceID ?? Array(repeating: 0, count: 16)
        body += spanID ?? Array(repeating: 0, count: 8)
        body += label.utf8
        for (key, value) in attributes {
            body += [UInt8(key.utf8.count), UInt8(value.utf8.count)]
            body += key.utf8
            body += value.utf8
        }
        var head: [UInt8] = []
        withUnsafeBytes(of: Self.magic) { head += $0 }
        withUnsafeBytes(of: Self.version) { head += $0 }
        withUnsafeBytes(of: UInt16(head.count + 6 + body.count)) { head += $0 }
        withUnsafeBytes(of: Self.checksum(of: body[...])) { head += $0 }
        return head + body
    }

    /// Reads a payload from a copy of the block; `nil` if the copy is not whole, or not a payload.
    package init?(copied bytes: [UInt8]) {
        guard bytes.count >= Self.headByteCount, bytes.word(at: 0, UInt32.self) == Self.magic,
            bytes.word(at: 4, UInt16.self) == Self.version
        else { return nil }
        let count = Int(bytes.word(at: 6, UInt16.self))
        guard count >= Self.headByteCount, count <= bytes.count,
            Self.checksum(of: bytes[12..<count]) == bytes.word(at: 8, UInt32.self)
        else { return nil }
        let flags = bytes[12]
        isCut = flags & Flags.isCut != 0
        omittedAttributes = Int(bytes[15])
        traceID = flags & Flags.hasTrace == 0 ? nil : Array(bytes[16..<32])
        spanID = flags & Flags.hasSpan == 0 ? nil : Array(bytes[32..<40])
        var rest = bytes[Self.headByteCount..<count]
        func text(_ length: UInt8) -> String? {
            guard rest.count >= Int(length) else { return nil }
            defer { rest = rest.dropFirst(Int(length)) }
            let text = String(decoding: rest.prefix(Int(length)), as: UTF8.self)
            return text.utf8.elementsEqual(rest.prefix(Int(length))) ? text : nil
        }
        guard let label = text(bytes[13]) else { return nil }
        self.label = label
        attributes = []
        for _ in 0..<bytes[14] {
            guard let keyLength = rest.popFirst(), let valueLength = rest.popFirst(), let key = text(keyLength),
                let value = text(valueLength)
            else { return nil }
            attributes.append((key, value))
        }
    }

    /// The 32-bit FNV-1a hash (draft-eastlake-fnv): one multiplication for each byte.
    private static func checksum(of bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reduce(0x811c_9dc5) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
    }
}

extension [UInt8] {
    /// The number at an offset, in the machine's byte order; the offset must be valid.
    fileprivate func word<Word: FixedWidthInteger>(at offset: Int, _ type: Word.Type) -> Word {
        withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }
}

extension String {
    /// The longest beginning with at most `limit` bytes of UTF-8 that ends between two characters.
    package func prefix(utf8 limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var left = limit
        let whole = prefix { character in
            left -= character.utf8.count
            return left >= 0
        }
        return String(whole)
    }
}
