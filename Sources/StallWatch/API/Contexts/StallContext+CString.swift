internal import StallReports

extension StallContext {
    /// Creates a context from texts of C, which may be long and not UTF-8.
    init(label: UnsafePointer<CChar>?, traceID: UnsafePointer<CChar>?, spanID: UnsafePointer<CChar>?) {
        let (text, isCut) = Self.text(label, limit: ContextPayload.maximumLabel)
        self.init(
            ContextPayload(
                label: text, traceID: Self.identifier(traceID, digits: 32), spanID: Self.identifier(spanID, digits: 16),
                isCut: isCut)
        )
    }

    /// Returns the part of a text that is UTF-8 and not longer than a limit in bytes, and whether more follows.
    private static func text(_ text: UnsafePointer<CChar>?, limit: Int) -> (String, isCut: Bool) {
        guard let text else { return ("", false) }
        // A character has at most four bytes: one that the limit cuts is complete in what is read.
        var bytes: [UInt8] = []
        while bytes.count < limit + 4, text[bytes.count] != 0 { bytes.append(UInt8(bitPattern: text[bytes.count])) }
        var decoder = UTF8()
        var source = bytes.makeIterator()
        var valid = String.UnicodeScalarView()
        while case .scalarValue(let scalar) = decoder.decode(&source) { valid.append(scalar) }
        let kept = String(valid).prefix(utf8: limit)
        return (kept, kept.utf8.count < bytes.count)
    }

    /// Returns a text with exactly that many bytes; `nil` for any other.
    private static func identifier(_ text: UnsafePointer<CChar>?, digits: Int) -> String? {
        guard let text else { return nil }
        for index in 0..<digits where text[index] == 0 { return nil }
        return text[digits] == 0 ? String(cString: text) : nil
    }
}
