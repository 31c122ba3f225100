/// Names that mean something to a terminal, a page, Markdown, XML or a CI system if they are not escaped.
package enum HostileNames {
    private static let pieces: [String] = [
        "\"", "'", "<", ">", "&", "`", "``", "|", "\\", "\\|", "*", "_", "[", "]", "(", ")", "~", "$", "@", "#", "%",
        ",",
        ";", ":", "!", "\n", "\r", "\r\n", "\t", " ", "  ", "\n::error::", "::warning file=a::", "##[error]", "-->",
        "]]>",
        "<!--", "<![CDATA[", "<script>window.wasRun=1</script>", "</script>", "\" onerror=\"window.wasRun=1",
        "\"\u{200d} onmouseover=\"window.wasRun=1", "<img src=x onerror=window.wasRun=1>", "<b>", "</div>", "&lt;",
        "&#60;", "%0A", "%3A", "![a](https://example.com/a.png)", "[a](https://example.com)", "https://example.com",
        "www.example.com", "@everyone", "**bold**", "~~gone~~", "```", "# title", "- item", "| a | b |", "`\u{301}",
        "|\u{301}", "\u{301}", "\u{20dd}", "\u{200d}", "\u{fe0f}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{200f}",
        "\u{2028}", "\u{2029}", "\u{1b}[2J", "\u{1b}[31m", "\u{1b}]0;title\u{7}", "\u{1b}c", "\u{9b}2J",
        "\u{9d}0;t\u{9c}",
        "\u{7f}", "\u{fffe}", "\u{feff}", "a", "f(_:)", "std::vector", "é", "漢", "😀",
    ]

    /// Returns names, the same ones for the same seed.
    package static func make(_ count: Int, seed: UInt64) -> [String] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in
            (0..<Int.random(in: 1...7, using: &generator)).map { _ in
                // Every fifth piece is one of the controls.
                guard Int.random(in: 0..<5, using: &generator) > 0 else {
                    let value = UInt32.random(in: 0..<0x40, using: &generator)
                    // Below U+00A0 every value is a scalar.
                    return Unicode.Scalar(value < 0x20 ? value : value + 0x60).map { String($0) } ?? ""
                }
                return pieces[Int.random(in: 0..<pieces.count, using: &generator)]
            }.joined()
        }
    }
}
