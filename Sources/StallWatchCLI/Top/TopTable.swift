import StallReports
import TextOutput

struct TopTable {
    static let standardLimit = 20
    /// The digits of a fingerprint that are shown, unless two groups have the same ones.
    private static let shortDigits = 8

    /// The lines beside the groups: titles, remainder, blank, conclusion, next step, and the shell's next prompt.
    private static let otherLines = 6
    /// The columns below which the remainder and the conclusion take two lines each.
    private static let onelineColumns = 80
    /// The fewest groups on a terminal, however low it is.
    private static let leastGroups = 3
    /// The columns of a caller where lines have no limit: names of closures and generics are long, and the others matter more.
    private static let callerColumns = 40

    let groups: StallGroups
    let shown: [StallGroup]
    var paths = [ReportFiles.standardFolder]
    var showsHarm = false

    static func limit(for terminal: Terminal) -> Int {
        let wrapped = (terminal.width ?? .max) < onelineColumns ? 2 : 0
        return terminal.height.map { max($0 - otherLines - wrapped, leastGroups) } ?? standardLimit
    }

    func text(for terminal: Terminal) -> String {
        guard !shown.isEmpty else { return "No report matches.\n" }
        // Most programs set no contexts.
        let hasContexts = shown.contains { $0.context != nil }
        var table = TextTable([
            .init("share", .right, dropped: 6), .init("count", .right, dropped: 10), .init("total", .right),
            .init("harm", .right),
            .init("p50", .right, dropped: 1), .init("p95", .right, dropped: 2), .init("max", .right, dropped: 3),
            .init("last (UTC)", dropped: 5), .init("cause", dropped: 9),
            .init("context", isFlexible: true, minimumWidth: 12),
            .init("culprit", isFlexible: true, minimumWidth: 20, style: .bold),
            .init("called by", isFlexible: true, minimumWidth: 14, unlimitedWidth: Self.callerColumns, dropped: 7),
            .init("where", isFlexible: true, minimumWidth: 18, keepsEnds: true, dropped: 8),
            .init("loop", isFlexible: true, dropped: 4),
            .init("id", style: .faint),
        ])
        let digits = fingerprintDigits
        let groupsByCulprit = Dictionary(grouping: shown, by: \.culprit)
        for group in shown {
            let culprit = group.culprit
            let total = group.totalMilliseconds
            let loops = group.loopCount > 1 ? " +\(group.loopCount - 1)" : ""
            let contexts = group.contextCount > 1 ? " +\(group.contextCount - 1)" : ""
            let context = group.context.map { $0 + contexts } ?? (hasContexts ? "-" : "")
            // A group of one stall has the same number in all four columns.
            func unlessTotal(_ milliseconds: Double) -> String { milliseconds == total ? "" : milliseconds.duration }
            table.add([
                share(total), String(group.count), estimate(group) + total.duration,
                showsHarm ? group.harmMilliseconds.map { $0 == 0 ? "none" : $0.duration } ?? "?" : "",
                unlessTotal(group.milliseconds(quantile: 0.5)),
                unlessTotal(group.milliseconds(quantile: 0.95)), unlessTotal(group.maximumMilliseconds),
                group.lastSeen.dayAndMinute, group.cause, context, culprit?.function ?? "-",
                culprit == nil ? "" : Self.distinctCaller(of: group, among: groupsByCulprit[culprit] ?? []),
                culprit?.file.map { sourcePlace($0, culprit?.line) } ?? culprit?.image ?? "-", group.loop + loops,
                group.fingerprint.map { String($0.prefix(digits)) } ?? "-",
            ])
        }
        let lines = [remainder, "", conclusion, next].compactMap(\.self)
        return table.text(for: terminal)
            + lines.map { $0.wrapped(to: terminal.width, indentation: "  ") + "\n" }.joined()
    }

    /// The command that shows the latest report of the first group that has a fingerprint; `nil` if reports came from standard input.
    private var next: String? {
        guard let fingerprint = shown.lazy.compactMap(\.fingerprint).first, !paths.contains("-") else { return nil }
        let words = paths == [ReportFiles.standardFolder] ? [] : paths.map(\.shellWord)
        let command = ([Invocation.name, "show"] + words + [String(fingerprint.prefix(fingerprintDigits))])
        return "Next: \(command.joined(separator: " "))".printable
    }

    private func estimate(_ group: StallGroup) -> String { group.isEstimated ? "≈" : "" }

    private func share(_ milliseconds: Double) -> String {
        let all = groups.totalMilliseconds
        return all > 0 ? (milliseconds / all * 100).fixed(0) + " %" : "-"
    }

    private var remainder: String? {
        let count = groups.all.count - shown.count
        guard count > 0 else { return nil }
        let rest = groups.totalMilliseconds - shown.reduce(0) { $0 + $1.totalMilliseconds }
        return "…and \(count) more with \(share(max(rest, 0))) of the time: --limit \(groups.all.count) shows all."
    }

    private var conclusion: String {
        let missed = groups.missed
        return "\(counted(reports: groups.reports, ofStalls: groups.count)) in "
            + "\(counted(groups.all.count, "group", "groups")): \(groups.totalMilliseconds.duration) in all, "
            + "the longest \(groups.maximumMilliseconds.duration)"
            + (missed > 0 ? "; \(missed) \(missed == 1 ? "was" : "were") over when the watchdog looked." : ".")
    }

    /// The nearest caller of a group's culprit that not all groups with this culprit have; empty for its only group.
    static func distinctCaller(of group: StallGroup, among groups: [StallGroup]) -> String {
        guard groups.count > 1 else { return "" }
        let depths = 0..<(groups.map(\.callers.count).max() ?? 0)
        let depth = depths.first { depth in Set(groups.map { $0.callers.dropFirst(depth).first }).count > 1 } ?? 0
        return group.callers.dropFirst(depth).first ?? group.callers.last ?? "-"
    }

    private var fingerprintDigits: Int {
        let fingerprints = Set(groups.all.compactMap(\.fingerprint))
        let isUnique = { (digits: Int) in Set(fingerprints.map { $0.prefix(digits) }).count == fingerprints.count }
        return [Self.shortDigits, 12].first(where: isUnique) ?? 16
    }

    var markdown: String {
        guard !shown.isEmpty else { return "No report matches.\n" }
        let hasContexts = shown.contains { $0.context != nil }
        let rows = shown.map { group in
            let place = group.culprit.flatMap { culprit in culprit.file.map { sourcePlace($0, culprit.line) } }
            return [
                share(group.totalMilliseconds), String(group.count),
                estimate(group) + group.totalMilliseconds.duration, group.milliseconds(quantile: 0.95).duration,
                MarkdownText.prose(group.cause),
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
        return MarkdownText.table(titles, right: [0, 1, 2, 3], rows) + "\n\(conclusion)\(left)\n"
    }
}

extension Timestamp {
    /// Month, day, hours and minutes (UTC): `11-21 08:00`.
    var dayAndMinute: String {
        // 2026-11-21T08:00:00.123456Z
        description.prefix(16).dropFirst(5).split(separator: "T").joined(separator: " ")
    }
}
