extension String {
    package var columns: Int {
        utf8.allSatisfy { $0 < 0x80 } ? utf8.count : reduce(0) { $0 + $1.columns }
    }

    package func truncated(to width: Int) -> String {
        guard columns > width else { return self }
        guard width > 0 else { return "" }
        return prefix(columns: width - 1, mayBeEmpty: true) + "…"
    }

    package func truncatedInMiddle(to width: Int) -> String {
        guard columns > width else { return self }
        guard width > 2 else { return truncated(to: width) }
        let end = String(String(reversed()).prefix(columns: (width - 1) / 2).reversed())
        return truncated(to: width - end.columns) + end
    }

    package func padded(to width: Int, _ alignment: Alignment = .left) -> String {
        let spaces = String(repeating: " ", count: Swift.max(width - columns, 0))
        return alignment == .left ? self + spaces : spaces + self
    }

    /// Breaks at spaces and within too long words; each line but the first, which keeps its own, gets `indentation`.
    package func wrapped(to width: Int?, indentation: String = "") -> String {
        guard let width, columns > width else { return self }
        // Room for text remains even on a very narrow terminal.
        let room = Swift.max(width, indentation.columns + 10)
        var lines: [String] = []
        var line = String(prefix { $0 == " " })
        var isBlank: Bool { line.allSatisfy { $0 == " " } }
        for word in dropFirst(line.count).split(separator: " ", omittingEmptySubsequences: false) {
            let longer = line + (isBlank ? "" : " ") + word
            guard longer.columns > room else {
                line = longer
                continue
            }
            if !isBlank { lines.append(line) }
            var rest = word
            line = lines.isEmpty ? "" : indentation
            while true {
                let part = rest.prefix(columns: room - line.columns)
                guard part.endIndex < rest.endIndex else { break }
                lines.append(line + part)
                rest = rest[part.endIndex...]
                line = indentation
            }
            line += rest
        }
        return (lines + [line]).joined(separator: "\n")
    }
}

extension StringProtocol {
    /// Returns the longest prefix that fits `width` columns; at least one character, unless `mayBeEmpty`.
    fileprivate func prefix(columns width: Int, mayBeEmpty: Bool = false) -> SubSequence {
        var used = 0
        return prefix { character in
            used += character.columns
            return used <= width || !mayBeEmpty && used == character.columns
        }
    }
}

extension Character {
    /// 2 for the wide characters of East Asia and for emoji (Unicode Standard Annex 11), else 1.
    fileprivate var columns: Int {
        guard let first = unicodeScalars.first else { return 0 }
        switch first.value {
        case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f,
            0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1faff, 0x20000...0x3fffd:
            return 2
        default:
            return 1
        }
    }
}
