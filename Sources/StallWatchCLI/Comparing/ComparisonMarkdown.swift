/// A comparison in Markdown.
struct ComparisonMarkdown {
    let comparison: Comparison
    let showsSame: Bool

    /// A table and the sentences of the text output.
    var text: String {
        let shown = comparison.changes.filter { showsSame || $0.kind != .same }
        let rows = shown.map { change in
            [
                change.kind == .new || change.kind == .worse ? "**\(change.kind.rawValue)**" : change.kind.rawValue,
                Comparison.pair(change, \.count) { String($0) },
                Comparison.pair(change, \.millisecondsPerHour) { $0.duration },
                Comparison.pair(change, \.medianMilliseconds) { $0.duration }, change.group.cause,
                change.group.culprit.map { MarkdownText.codeCell($0.function) } ?? "-",
                change.group.fingerprint.map(MarkdownText.codeCell) ?? "-",
            ]
        }
        let titles = ["change", "stalls", "stalled/h", "median", "cause", "culprit", "fingerprint"]
        let table = rows.isEmpty ? "" : MarkdownText.table(titles, right: [1, 2, 3], rows) + "\n"
        return table + comparison.conclusion.map { MarkdownText.prose($0) + "\n" }.joined(separator: "\n")
    }
}
