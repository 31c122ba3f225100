extension StringProtocol {
    /// Whether the text contains `part`, byte by byte.
    ///
    /// `contains(_:)` of the standard library compares characters and takes ten times as long for names and paths.
    package func containsBytes(of part: StaticString) -> Bool {
        part.withUTF8Buffer { part in
            // Of a text that is not stored as UTF-8, a copy.
            utf8.withContiguousStorageIfAvailable { $0.containsBytes(of: part) }
                ?? Array(utf8).withUnsafeBufferPointer { $0.containsBytes(of: part) }
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Not generic: over the views of texts, the loops took a twentieth of a symbolication's time.
    fileprivate func containsBytes(of part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let first = part.first else { return true }
        guard part.count <= count else { return false }
        return (0...count - part.count).contains { start in
            // Inside: `start` is at most the count without the part's.
            self[start] == first && self[start..<start + part.count].elementsEqual(part)
        }
    }
}
