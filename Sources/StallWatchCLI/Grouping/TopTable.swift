import StallReports
import TextOutput

/// The table that `top` prints.
struct TopTable {
    /// The number of groups that are shown by default.
    static let standardLimit = 20
    /// The digits of a fingerprint that are shown, unless two groups have the same ones.
    private static let shortDigits = 8

    /// The place of the context, right after the cause.
    private static let contextColumn = 8

    private let groups: StallGroups
    private let shown: [StallGroup]

    init(_ groups: StallGroups, shown: [StallGroup]) {
        self.groups = groups
        self.shown = shown
    }

    /// The table and a closing sentence.
    func text(for terminal: Terminal) -> String {
        guard !shown.isEmpty else { return "No report matches.\n" }
        // Most programs set no contexts.
        let hasContexts = shown.contains { $0.context != nil }
        var columns: [TextTable.Column] = [
            .init("share", .right), .init("count", .right), .init("total", .right), .init("p50", .right, dropped: 1),
            .init("p95", .right, dropped: 2), .init("max", .right, dropped: 3), .init("last (UTC)", dropped: 6),
            .init("cause"), .init("culprit", isFlexible: true, minimumWidth: 28, style: .bold),
            .init("called by", isFlexible: true, minimumWidth: 14),
            .init("where", isFlexible: true, minimumWidth: 14, dropped: 4), .init("loop", isFlexible: true, dropped: 5),
            .init("fingerprint", dropped: 7, style: .faint),
        ]
        if hasContexts { columns.insert(.init("context", isFlexible: true, minimumWidth: 12), at: Self.contextColumn) }
        var table = TextTable(columns)
        let digits = fingerprintDigits
        let ambiguous = ambiguousCulprits
        for group in shown {
            let culprit = group.culprit
            let total = group.totalMilliseconds
            let others = group.loopCount > 1 ? " +\(group.loopCount - 1)" : ""
            // A group of one stall has the same number in all four columns.
            func unlessTotal(_ milliseconds: Double) -> String { milliseconds == total ? "" : milliseconds.duration }
            var cells = [
                share(total), String(group.count), total.duration, unlessTotal(group.milliseconds(quantile: 0.5)),
                unlessTotal(group.milliseconds(quantile: 0.95)), unlessTotal(group.maximumMilliseconds),
                group.lastSeen.dayAndMinute, group.cause, culprit?.function ?? "-",
                culprit.map(ambiguous.contains) == true ? group.caller ?? "-" : "",
                culprit?.file.map { sourcePlace($0, culprit?.line) } ?? culprit?.image ?? "-", group.loop + others,
                group.fingerprint.map { String($0.prefix(digits)) } ?? "-",
            ]
            if hasContexts {
                let others = group.contextCount > 1 ? " +\(group.contextCount - 1)" : ""
                cells.insert((group.context ?? "-") + others, at: Self.contextColumn)
            }
            table.add(cells)
        }
        return table.text(for: terminal) + remainder + "\n" + conclusion + "\n"
    }

    private func share(_ milliseconds: Double) -> String {
        let all = groups.totalMilliseconds
        return all > 0 ? (milliseconds / all * 100).fixed(0) + " %" : "-"
    }

    private var remainder: String {
        let count = groups.all.count - shown.count
        guard count > 0 else { return "" }
        let rest = groups.totalMilliseconds - shown.reduce(0) { $0 + $1.totalMilliseconds }
        return "…and \(count) more with \(share(max(rest, 0))) of the time: --limit \(groups.all.count) shows all.\n"
    }

    private var conclusion: String {
        let stalls = counted(groups.count, "stall", "stalls")
        let reports = counted(groups.reports, "report", "reports")
        return "\(stalls) in \(counted(groups.all.count, "group", "groups")), "
            + "\(groups.totalMilliseconds.duration) in \(reports)."
    }

    /// The culprits of more than one shown group.
    private var ambiguousCulprits: Set<ReportSummary.Culprit> {
        Set(Dictionary(grouping: shown.compactMap(\.culprit)) { $0 }.filter { $0.value.count > 1 }.keys)
    }

    /// The number of digits that distinguishes the fingerprints of all groups.
    private var fingerprintDigits: Int {
        let fingerprints = Set(groups.all.compactMap(\.fingerprint))
        let isUnique = { (digits: Int) in Set(fingerprints.map { $0.prefix(digits) }).count == fingerprints.count }
        return [Self.shortDigits, 12].first(where: isUnique) ?? 16
    }
}

extension Timestamp {
    /// Month, day, hours and minutes (UTC): `11-21 08:00`.
    fileprivate var dayAndMinute: String {
        // 2026-11-21T08:00:00.123456Z
        let text = Array(description)
        guard text.count >= 16 else { return description }
        return String(text[5..<10]) + " " + String(text[11..<16])
    }
}
