import TextOutput

/// Text in GitHub's Markdown (github.github.com/gfm).
enum MarkdownText {
    /// Prose in one line, in which no character is markup.
    static func prose(_ text: String) -> String {
        oneLine(text).reduce(into: "") { result, character in
            if #"\`*_[]<>&|~"#.contains(character) { result.append("\\") }
            result.append(character)
        }
    }

    /// A code span; `text` may contain backticks.
    static func code(_ text: String) -> String {
        let text = oneLine(text)
        guard !text.isEmpty else { return "" }
        let quotes = String(repeating: "`", count: longestRun(of: "`", in: text) + 1)
        let pad = text.hasPrefix("`") || text.hasSuffix("`") ? " " : ""
        return quotes + pad + text + pad + quotes
    }

    /// A code span in a table's cell, where a vertical bar needs a backslash even in code.
    static func codeCell(_ text: String) -> String { code(text).replacing("|", with: "\\|") }

    /// A block of code.
    static func block(_ lines: [String]) -> String {
        let fence = String(repeating: "`", count: max(longestRun(of: "`", in: lines.joined(separator: "\n")) + 1, 3))
        return ([fence + "text"] + lines + [fence]).joined(separator: "\n") + "\n"
    }

    /// A table; the cells are Markdown already.
    ///
    /// - Parameters:
    ///   - titles: The columns' titles.
    ///   - right: The indices of the columns with numbers, which are aligned to the right.
    ///   - rows: The rows, with a cell for each title.
    /// - Returns: The table, with a line feed at the end.
    static func table(_ titles: [String], right: Set<Int> = [], _ rows: [[String]]) -> String {
        let rule = titles.indices.map { right.contains($0) ? "---:" : "---" }
        return ([titles, rule] + rows).map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
    }

    private static func oneLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ").printable
    }

    private static func longestRun(of character: Character, in text: String) -> Int {
        var longest = 0, run = 0
        for next in text {
            run = next == character ? run + 1 : 0
            longest = max(longest, run)
        }
        return longest
    }
}
