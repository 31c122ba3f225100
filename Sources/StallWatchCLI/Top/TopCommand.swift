import ArgumentParser
import StallReports
import Synchronization

struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Group equal stalls and show what each group costs.",
        discussion: """
            Stalls with the same fingerprint went the same way through the app's own functions. The count includes repeats that \
            have no report of their own, and so do share, total and max: ≈ marks a total with reports of older versions, which do not \
            say how long these lasted. p50 and p95 are of the reports. Where groups have the same culprit, the first caller is shown \
            that differs. Harm is how long timers and items of the main queue waited, and operations were in flight meanwhile: the \
            sum; repeats count like the report, by their time. A terminal gets as many groups as it has lines for. Elsewhere lines have any length, unless COLUMNS is set.

            --history compares the versions in the reports' metadata. A stall is new if only the newest version has it, gone if \
            the versions since it was last seen do not have it, and regressed if the newest version has it again after versions \
            without it. Each of these only if, at the stall's rate, the versions without it would have had at least 3. Rates are \
            per hour of monitored time, by statistics files in the directories, else by the reports.

            Examples:
              stallwatch top stalls
              stallwatch top stalls --sort last -n 5
              stallwatch top stalls --group-by culprit --since 2026-11-21 --json
              stallwatch top stalls --by context
              stallwatch top stalls --by harm
              stallwatch top /var/log/notes --history
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(
        help: ArgumentHelp(
            "Sort by total, count, p50, p95, max, last (the time of the last one) or harm (what waited).",
            valueName: "column"))
    var sort = StallGroups.Order.total

    @Option(
        name: [.long, .customLong("by")],
        help: ArgumentHelp(
            "Group by fingerprint, culprit, cause, loop, caller or context; harm is short for --sort harm.",
            valueName: "value"))
    var groupBy = StallGroups.Grouping.fingerprint

    // Unconditional, so that -1 is an invalid value and not an unknown option; joined, as in head(1), is -n5.
    @Option(
        name: [.customShort("n", allowingJoined: true), .long], parsing: .unconditional,
        help: ArgumentHelp(
            "Show this many groups. Default: what fits the terminal, elsewhere \(TopTable.standardLimit); all with --json.",
            valueName: "count"))
    var limit: Int?

    @Flag(help: "Show since when stalls are known, in which versions, how often, and what is new, gone or regressed.")
    var history = false

    @OptionGroup var terminalOptions: TerminalOptions

    @OptionGroup var formatOptions: FormatOptions

    func validate() throws {
        if history, groupBy != .fingerprint { throw ValidationError("--history groups by fingerprint.") }
        if history, ![.text, .json].contains(formatOptions.chosen) {
            throw ValidationError("--history prints text or JSON.")
        }
        if let limit, limit < 1 { throw ValidationError("--limit is \(limit), but has to be at least 1.") }
    }

    func run() throws {
        if history { return try showHistory() }
        var groups = StallGroups(by: groupBy)
        let isForEach = groupBy == .caller
        // Looking up callers takes as long as all other fields of a report: once for each fingerprint.
        let known = Mutex<Set<String>>([])
        let summary = ReportReading.summary(withCallers: { fingerprint in
            isForEach || fingerprint.map { id in known.withLock { $0.insert(id).inserted } } ?? false
        })
        let reading: ReportReading<ReportSummary> = formatOptions.isForCI && !isForEach ? .explained : summary
        try NoStalls.allowed(formatOptions.isDocument) {
            try selection.read().forEach(reading) { groups.add($0, $1) }
        }
        let sorted = groups.sorted(by: order)
        let terminal = terminalOptions.terminal
        let isText = formatOptions.chosen == .text
        let standard = isText ? TopTable.limit(for: terminal) : TopTable.standardLimit
        let shown = Array(sorted.prefix(limit ?? standard))
        let table = TopTable(groups: groups, shown: shown, paths: selection.paths, showsHarm: order == .harm)
        switch formatOptions.chosen {
        case .text: try StandardOutput.writeLast(table.text(for: terminal))
        case .json:
            try StandardOutput.write(JSONOutput.bytes(TopReport(groups, shown: Array(sorted.prefix(limit ?? .max)))))
        case .markdown: try StandardOutput.write(table.markdown)
        case .github: try CIOutput.printGitHub(shown.map { Finding($0) }, summary: table.markdown)
        case .junit: try StandardOutput.write(JUnitDocument(findings: shown.map { Finding($0) }).text)
        }
    }

    private var order: StallGroups.Order { groupBy == .harm ? .harm : sort }

    private func showHistory() throws {
        var (groups, history) = (StallGroups(), VersionHistory(selection.filters.filter))
        var statistics: [String] = []
        try NoStalls.allowed(formatOptions.isDocument) {
            let reports = try selection.read()
            statistics = reports.statistics
            try reports.forEach(.summary) { report, origin in
                groups.add(report, origin)
                history.add(report)
            }
        }
        let time = MonitoredTime(statistics: statistics, reports: history.hours)
        let terminal = terminalOptions.terminal
        let isText = formatOptions.chosen == .text
        let standard = isText ? TopTable.limit(for: terminal) : .max
        let table = HistoryTable(groups.sorted(by: sort), limit: limit ?? standard, history: history, time: time)
        guard isText else { return try StandardOutput.write(JSONOutput.bytes(table)) }
        try StandardOutput.writeLast(table.text(for: terminal))
    }
}

extension StallGroups.Order: ExpressibleByArgument {
    /// The words of `show` mean the same.
    init?(argument: String) { self.init(rawValue: ["newest": "last", "longest": "max"][argument] ?? argument) }
}
extension StallGroups.Grouping: ExpressibleByArgument {}

struct TopReport: Encodable {
    let reports: Int
    /// Stalls, including repeats that were not reported.
    let count: Int
    /// Reports of stalls that were over when the watchdog looked.
    let missed: Int
    let totalMilliseconds: Double
    /// All groups, including those that `--limit` leaves out.
    let groupCount: Int
    let groups: [GroupRow]

    struct GroupRow: Encodable {
        let fingerprint: String?
        let count: Int
        let reports: Int
        let repeats: Int
        let totalMilliseconds: Double
        let isEstimated: Bool
        let p50Milliseconds: Double
        let p95Milliseconds: Double
        let maxMilliseconds: Double
        let harmMilliseconds: Double?
        let cause: String
        let culprit: ReportSummary.Culprit?
        let caller: String?
        let loop: String
        let context: String?
        let firstSeen: Timestamp
        let lastSeen: Timestamp
        let longest: StallGroup.Longest?
    }

    init(_ groups: StallGroups, shown: [StallGroup]) {
        reports = groups.reports
        count = groups.count
        missed = groups.missed
        totalMilliseconds = groups.totalMilliseconds.toMicroseconds
        groupCount = groups.all.count
        self.groups = shown.map(GroupRow.init)
    }
}

extension TopReport.GroupRow {
    init(_ group: StallGroup) {
        self.init(
            fingerprint: group.fingerprint, count: group.count, reports: group.reports, repeats: group.repeats,
            totalMilliseconds: group.totalMilliseconds.toMicroseconds, isEstimated: group.isEstimated,
            p50Milliseconds: group.milliseconds(quantile: 0.5), p95Milliseconds: group.milliseconds(quantile: 0.95),
            maxMilliseconds: group.maximumMilliseconds,
            harmMilliseconds: group.harmMilliseconds?.toMicroseconds, cause: group.cause, culprit: group.culprit,
            caller: group.callers.first, loop: group.loop, context: group.context, firstSeen: group.firstSeen,
            lastSeen: group.lastSeen, longest: group.longest
        )
    }
}
