extension StringProtocol {
    /// Returns the longest beginning of the text that has at most `count` bytes of UTF-8, and no part of a character.
    package func prefix(bytes count: Int) -> String {
        guard utf8.count > count else { return String(self) }
        var left = count
        let whole = prefix { character in
            left -= character.utf8.count
            return left >= 0
        }
        return String(whole)
    }
}
