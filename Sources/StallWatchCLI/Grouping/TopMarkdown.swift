import StallReports

/// The groups of `top` in Markdown.
struct TopMarkdown {
    let groups: StallGroups
    let shown: [StallGroup]

    /// A table and a closing sentence.
    var text: String {
        guard !shown.isEmpty else { return "No report matches.\n" }
        let all = groups.totalMilliseconds
        let hasContexts = shown.contains { $0.context != nil }
        let rows = shown.map { group in
            let total = group.totalMilliseconds
            let place = group.culprit.flatMap { culprit in culprit.file.map { sourcePlace($0, culprit.line) } }
            return [
                all > 0 ? (total / all * 100).fixed(0) + " %" : "-", String(group.count), total.duration,
                group.milliseconds(quantile: 0.95).duration, group.cause,
                group.culprit.map { MarkdownText.codeCell($0.function) } ?? "-",
                place.map(MarkdownText.codeCell) ?? "-", MarkdownText.prose(group.loop),
                group.fingerprint.map(MarkdownText.codeCell) ?? "-",
            ] + (hasContexts ? [group.context.map(MarkdownText.prose) ?? "-"] : [])
        }
        let titles =
            ["share", "count", "total", "p95", "cause", "culprit", "where", "loop", "fingerprint"]
            + (hasContexts ? ["context"] : [])
        let rest = groups.all.count - shown.count
        let left = rest > 0 ? " \(counted(rest, "group is", "groups are")) not shown." : ""
        return MarkdownText.table(titles, right: [0, 1, 2, 3], rows)
            + "\n\(counted(groups.count, "stall", "stalls")) in \(counted(groups.all.count, "group", "groups")), "
            + "\(all.duration) in \(counted(groups.reports, "report", "reports")).\(left)\n"
    }
}
