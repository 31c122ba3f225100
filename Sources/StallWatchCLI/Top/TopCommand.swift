import ArgumentParser
import StallReports
import Synchronization
import TextOutput

struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Group equal stalls and show what each group costs.",
        discussion: """
            Stalls with the same fingerprint went the same way through the app's own functions. The count includes repeats that \
            have no report of their own, and so do share, total and max: ≈ marks a total with reports of older versions, which do not \
            say how long these lasted. p50 and p95 are of the reports. The caller is shown where \
            groups have the same culprit.

            Examples:
              stallwatch top stalls
              stallwatch top stalls --sort last -n 5
              stallwatch top stalls --group-by culprit --since 2026-11-21 --json
              stallwatch top stalls --by context
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(
        help: ArgumentHelp(
            "Sort by total, count, p50, p95, max or last (the time of the last one).", valueName: "column"))
    var sort = StallGroups.Order.total

    @Option(
        name: [.long, .customLong("by")],
        help: ArgumentHelp("Group by fingerprint, culprit, cause, loop, caller or context.", valueName: "value"))
    var groupBy = StallGroups.Grouping.fingerprint

    // Unconditional, so that -1 is an invalid value and not an unknown option.
    @Option(
        name: [.customShort("n"), .long], parsing: .unconditional,
        help: ArgumentHelp(
            "Show this many groups. Default: \(TopTable.standardLimit); all with --json.", valueName: "count"))
    var limit: Int?

    @OptionGroup var terminalOptions: TerminalOptions

    @OptionGroup var formatOptions: FormatOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit is \(limit), but has to be at least 1.") }
    }

    func run() throws {
        var groups = StallGroups(by: groupBy)
        let callers = CallerLookup(isForEach: groupBy == .caller)
        try selection.read().forEachMatch { bytes, summary throws(UnreadableReport) in
            callers.caller(in: bytes, of: summary)
        } body: { summary, caller, origin in
            groups.add(summary, origin, caller: caller)
        }
        let sorted = groups.sorted(by: sort)
        let shown = Array(sorted.prefix(limit ?? TopTable.standardLimit))
        let table = TopTable(groups: groups, shown: shown)
        switch formatOptions.chosen {
        case .text: try StandardOutput.write(table.text(for: terminalOptions.terminal))
        case .json:
            try StandardOutput.write(JSONOutput.bytes(TopReport(groups, shown: Array(sorted.prefix(limit ?? .max)))))
        case .markdown: try StandardOutput.write(table.markdown)
        case .github: try CIOutput.printGitHub(shown.map { Finding($0) }, summary: table.markdown)
        case .junit: try StandardOutput.write(JUnitDocument(findings: shown.map { Finding($0) }).text)
        }
    }

    /// Looks up callers, which takes as long as all other fields of a report: once for each fingerprint.
    private final class CallerLookup: Sendable {
        private let known = Mutex<Set<String>>([])
        private let isForEach: Bool

        init(isForEach: Bool) { self.isForEach = isForEach }

        func caller(in json: [UInt8], of report: ReportSummary) -> String? {
            let isNew = report.fingerprint.map { id in known.withLock { $0.insert(id).inserted } } ?? false
            return isForEach || isNew ? CulpritCaller.name(in: json) : nil
        }
    }
}

extension StallGroups.Order: ExpressibleByArgument {}
extension StallGroups.Grouping: ExpressibleByArgument {}

struct TopTable {
    static let standardLimit = 20
    /// The digits of a fingerprint that are shown, unless two groups have the same ones.
    private static let shortDigits = 8

    /// The place of the context, right after the cause.
    private static let contextColumn = 8

    let groups: StallGroups
    let shown: [StallGroup]

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
                share(total), String(group.count), estimate(group) + total.duration,
                unlessTotal(group.milliseconds(quantile: 0.5)),
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

    /// Marks sums over reports that do not say what the stalls lasted that they stand for.
    private func estimate(_ group: StallGroup) -> String { group.isEstimated ? "≈" : "" }

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

extension TopTable {
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

/// The output of `top --json`.
struct TopReport: Encodable {
    /// Reports that passed the filters.
    let reports: Int
    /// Stalls, including repeats that were not reported.
    let count: Int
    let totalMilliseconds: Double
    /// All groups, including those that `--limit` leaves out.
    let groupCount: Int
    let groups: [Group]

    struct Group: Encodable {
        let fingerprint: String?
        let count: Int
        let reports: Int
        let repeats: Int
        let totalMilliseconds: Double
        /// Whether the total is estimated: a report of an older version does not say what its repeats lasted.
        let isEstimated: Bool
        let p50Milliseconds: Double
        let p95Milliseconds: Double
        let maxMilliseconds: Double
        let cause: String
        let culprit: ReportSummary.Culprit?
        let caller: String?
        let loop: String
        /// The context of most of the time.
        let context: String?
        let firstSeen: Timestamp
        let lastSeen: Timestamp
        let longest: Longest?
    }

    struct Longest: Encodable {
        let id: String
        let path: String
        let line: Int?
    }

    init(_ groups: StallGroups, shown: [StallGroup]) {
        reports = groups.reports
        count = groups.count
        totalMilliseconds = groups.totalMilliseconds.toMicroseconds
        groupCount = groups.all.count
        self.groups = shown.map(Group.init)
    }
}

extension TopReport.Group {
    init(_ group: StallGroup) {
        self.init(
            fingerprint: group.fingerprint, count: group.count, reports: group.reports, repeats: group.repeats,
            totalMilliseconds: group.totalMilliseconds.toMicroseconds, isEstimated: group.isEstimated,
            p50Milliseconds: group.milliseconds(quantile: 0.5), p95Milliseconds: group.milliseconds(quantile: 0.95),
            maxMilliseconds: group.maximumMilliseconds, cause: group.cause, culprit: group.culprit,
            caller: group.caller, loop: group.loop, context: group.context, firstSeen: group.firstSeen,
            lastSeen: group.lastSeen,
            longest: group.longest.map { .init(id: $0.id, path: $0.origin.path, line: $0.origin.line) }
        )
    }
}
