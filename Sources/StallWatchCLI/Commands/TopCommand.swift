import ArgumentParser
import Synchronization

/// Shows which groups of equal stalls cost most.
struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Group equal stalls and show what each group costs.",
        discussion: """
            Stalls with the same fingerprint went the same way through the app's own functions. The count includes repeats that \
            were counted and not reported; share, total, p50, p95 and max are of the reported stalls. The caller is shown where \
            groups have the same culprit.

            Examples:
              stallwatch top stalls
              stallwatch top stalls --sort last --limit 5
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
        parsing: .unconditional,
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
        switch formatOptions.chosen {
        case .text:
            try StandardOutput.write(TopTable(groups, shown: shown).text(for: terminalOptions.terminal))
        case .json:
            try StandardOutput.write(JSONOutput.bytes(TopReport(groups, shown: Array(sorted.prefix(limit ?? .max)))))
        case .markdown:
            try StandardOutput.write(TopMarkdown(groups: groups, shown: shown).text)
        case .github:
            try CIOutput.printGitHub(
                shown.map { Finding($0) }, summary: TopMarkdown(groups: groups, shown: shown).text)
        case .junit:
            try StandardOutput.write(JUnitDocument(findings: shown.map { Finding($0) }).text)
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
