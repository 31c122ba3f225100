// All go by Unicode scalar: by `Character`, a quote with a combining mark or a joiner after it is not a quote, and
// stays one for the reader.

extension String {
    /// One line for a terminal: without controls, line separators and changes of the text direction.
    package var printable: String {
        if utf8.allSatisfy({ 0x20..<0x7f ~= $0 }) { return self }
        return mappingScalars { $0.isControl ? "\u{fffd}" : nil }
    }

    /// The text as one word of a shell's command line: in quotes if it needs them.
    package var shellWord: String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,".utf8)
        if !isEmpty, utf8.allSatisfy(plain.contains) { return self }
        return "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }

    /// For XML 1.0, as content or an attribute's value in quotes; one line, and no workflow command where CI prints it.
    package var escapedForXML: String {
        // Whether the text begins, after blanks, as a workflow command does.
        var isCommand = unicodeScalars.drop(while: \.isBlank).starts(with: "::".unicodeScalars)
        var signs = 0
        return mappingScalars { scalar in
            defer {
                signs = scalar == "#" ? signs + 1 : 0
                if scalar == ":" { isCommand = false }
            }
            switch scalar {
            case "&": return "&amp;"
            case "<": return "&lt;"
            case ">": return "&gt;"
            case "\"": return "&quot;"
            case "'": return "&apos;"
            case "\n", "\t", "\r": return "&#\(scalar.value);"
            case ":" where isCommand: return "&#58;"
            case "[" where signs >= 2: return "&#91;"
            default: return scalar.isControl || scalar.value & 0xfffe == 0xfffe ? "\u{fffd}" : nil
            }
        }
    }

    /// By docs.github.com, "Workflow commands for GitHub Actions".
    package var escapedForWorkflowMessage: String {
        mappingScalars { scalar in
            switch scalar {
            case "%": "%25"
            case "\r": "%0D"
            case "\n": "%0A"
            default: scalar.isControl ? "\u{fffd}" : nil
            }
        }
    }

    package var escapedForWorkflowProperty: String {
        escapedForWorkflowMessage.mappingScalars { $0 == ":" ? "%3A" : $0 == "," ? "%2C" : nil }
    }

    /// GitHub's runner obeys a line of output that begins with `::` after blanks, or that has `##[` anywhere.
    package var withoutWorkflowCommands: String {
        guard utf8.contains(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "#") }) else { return self }
        var signs = 0
        // The colons that the line begins with, after blanks; `nil` after anything else.
        var colons: Int? = 0
        return mappingScalars { scalar in
            defer {
                signs = scalar == "#" ? signs + 1 : 0
                switch scalar {
                case "\n", "\r": colons = 0
                case ":": colons = colons.map { $0 + 1 }
                default: if colons != 0 || !scalar.isBlank { colons = nil }
                }
            }
            return scalar == "[" && signs >= 2 || scalar == ":" && colons == 1 ? " \(scalar)" : nil
        }
    }

    /// Replaces each scalar by what `replacement` returns; `nil` keeps it.
    func mappingScalars(_ replacement: (Unicode.Scalar) -> String?) -> String {
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if let text = replacement(scalar) {
                result.append(contentsOf: text.unicodeScalars)
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }
}

extension Unicode.Scalar {
    /// Whether it is a control of ISO 6429, separates lines, changes the text direction, or is a byte of a path that is
    /// not UTF-8.
    fileprivate var isControl: Bool {
        switch value {
        case 0..<0x20, 0x7f..<0xa0, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069,
            0xef80...0xefff:
            true
        default: false
        }
    }

    fileprivate var isBlank: Bool { properties.isWhitespace || isControl }
}

package enum PlainJSON {
    /// With `<`, `>` and `&` as `\u` escapes: a `<script>` element of HTML ends at the first `</script`.
    package static func escapedForScript(_ json: [UInt8]) -> [UInt8] {
        let marks: [UInt8: String] = [
            UInt8(ascii: "<"): "\\u003c", UInt8(ascii: ">"): "\\u003e", UInt8(ascii: "&"): "\\u0026",
        ]
        return json.reduce(into: []) { result, byte in
            if let escape = marks[byte] { result += escape.utf8 } else { result.append(byte) }
        }
    }

    /// Escapes controls, of which JSON writers escape only those below U+0020, and `##[`, which GitHub's runner
    /// would obey; outside strings, the document has ASCII only.
    package static func escaped(_ json: [UInt8]) -> [UInt8] {
        // The first bytes of what isControl has over U+0020, and a sign that is rare in reports.
        let marks: [UInt8] = [0x7f, 0xc2, 0xd8, 0xe2, UInt8(ascii: "#")]
        guard json.contains(where: marks.contains) else { return json }
        var signs = 0
        return Array(
            String(decoding: json, as: UTF8.self).mappingScalars { scalar in
                defer { signs = scalar == "#" ? signs + 1 : 0 }
                let isCommand = scalar == "[" && signs >= 2
                guard isCommand || scalar.value >= 0x7f && scalar.isControl else { return nil }
                let digits = String(scalar.value, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.utf8)
    }
}

/// Text in GitHub's Markdown (github.github.com/gfm).
package enum MarkdownText {
    /// Prose in one line, in which no character is markup, and no address or name becomes a link.
    package static func prose(_ text: String) -> String {
        var last: Unicode.Scalar?
        var letters = 0
        return oneLine(text).mappingScalars { scalar in
            defer {
                last = scalar
                letters = scalar == "w" || scalar == "W" ? letters + 1 : 0
            }
            switch scalar {
            case "\\", "`", "*", "_", "[", "]", "<", ">", "&", "|", "~", "$": return "\\\(scalar)"
            case "/" where last == ":": return "\\/"
            case "." where letters >= 3: return "\\."
            // A word joiner, which is not seen. GitHub looks for names after Markdown's escapes are gone.
            case "@": return "@\u{2060}"
            default: return nil
            }
        }
    }

    /// A code span; `text` may contain backticks.
    package static func code(_ text: String) -> String {
        let text = oneLine(text)
        guard !text.isEmpty else { return "" }
        let quotes = String(repeating: "`", count: longestRun(in: text) + 1)
        let touches = text.unicodeScalars.first == "`" || text.unicodeScalars.last == "`"
        let pad = touches ? " " : ""
        return quotes + pad + text + pad + quotes
    }

    /// A code span in a table's cell, where a vertical bar needs a backslash even in code.
    package static func codeCell(_ text: String) -> String {
        let scalars = text.unicodeScalars
        // Readers disagree about a backslash before that backslash, but not in prose.
        if zip(scalars, scalars.dropFirst()).contains(where: { $0 == ("\\", "|") }) { return prose(text) }
        return code(text).mappingScalars { $0 == "|" ? "\\|" : nil }
    }

    package static func block(_ lines: [String]) -> String {
        let lines = lines.map(\.printable)
        let fence = String(repeating: "`", count: max((lines.map(longestRun).max() ?? 0) + 1, 3))
        return ([fence + "text"] + lines + [fence]).joined(separator: "\n") + "\n"
    }

    /// A table, whose cells are Markdown already; the columns with the indices `right` are aligned to the right.
    package static func table(_ titles: [String], right: Set<Int> = [], _ rows: [[String]]) -> String {
        let rule = titles.indices.map { right.contains($0) ? "---:" : "---" }
        return ([titles, rule] + rows).map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
    }

    private static func oneLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ").printable
    }

    private static func longestRun(in text: String) -> Int {
        var longest = 0, run = 0
        for scalar in text.unicodeScalars {
            run = scalar == "`" ? run + 1 : 0
            longest = max(longest, run)
        }
        return longest
    }
}
