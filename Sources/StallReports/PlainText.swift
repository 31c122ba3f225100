extension String {
    /// One line that no terminal and no log obeys: names of files, threads and processes may have any character.
    package var withoutControls: String {
        if utf8.allSatisfy({ 0x20..<0x7f ~= $0 }) { return self }
        var result = UnicodeScalarView()
        for scalar in unicodeScalars {
            switch scalar.value {
            // Controls of ISO 6429, separators of lines, changes of the text's direction, bytes of a path that is not UTF-8.
            case 0..<0x20, 0x7f..<0xa0, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069, 0xef80...0xefff:
                result.append("\u{fffd}")
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
