extension String {
    /// The text in lines of at most `width` columns, broken at spaces and within words that are longer than a line.
    ///
    /// - Parameters:
    ///   - width: `nil` for no limit.
    ///   - indentation: The beginning of each line after the first.
    /// - Returns: The lines, joined by line feeds.
    package func wrapped(to width: Int?, indentation: String = "") -> String {
        guard let width, columns > width else { return self }
        // Room for text remains even on a very narrow terminal.
        let room = Swift.max(width, indentation.columns + 10)
        var lines: [String] = []
        var line = ""
        for word in split(separator: " ", omittingEmptySubsequences: false) {
            let longer = line.isEmpty ? String(word) : line + " " + word
            guard longer.columns > room else {
                line = longer
                continue
            }
            if line.columns > indentation.columns { lines.append(line) }
            line = lines.isEmpty ? String(word) : indentation + word
            while line.columns > room {
                let part = line.prefix(columns: room)
                lines.append(part)
                line = indentation + line.dropFirst(part.count)
            }
        }
        return (lines + [line]).joined(separator: "\n")
    }

    /// The longest beginning with at most `width` columns, at least one character.
    private func prefix(columns width: Int) -> String {
        var text = ""
        for character in self {
            if !text.isEmpty, text.columns + String(character).columns > width { break }
            text.append(character)
        }
        return text
    }
}
