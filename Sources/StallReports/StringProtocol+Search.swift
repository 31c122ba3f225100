extension StringProtocol {
    /// Whether the text contains `part`, byte by byte.
    ///
    /// `contains(_:)` of the standard library compares characters and takes ten times as long for names and paths.
    package func containsBytes(of part: StaticString) -> Bool {
        part.withUTF8Buffer { part in
            var rest = utf8[...]
            while let first = part.first, let start = rest.firstIndex(of: first) {
                if rest[start...].starts(with: part) { return true }
                rest = rest[start...].dropFirst()
            }
            return part.isEmpty
        }
    }
}
