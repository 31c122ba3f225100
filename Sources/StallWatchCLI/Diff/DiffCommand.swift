import ArgumentParser
import StallReports

struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Compare two sets of reports: which stalls are new, worse, better, gone.",
        discussion: """
            Compares groups of equal stalls by the time they cost per hour of monitored time. The monitored time comes from \
            --base-time and --new-time, else from statistics files in the directories, else from the processes in the reports, \
            from each start to the end of the last stall. A group is worse when it costs more than --tolerance more \
            than before, and either its stalls take longer or there are more of them than chance explains (two standard \
            deviations). One that is on one side only is new or gone if the other side would have had at least 3 of them at its \
            rate; else it has a question mark, and --fail-on does not count it. A side without reports is one without stalls.

            Examples:
              stallwatch diff last-week this-week
              stallwatch diff main-branch pull-request --fail-on new,worse
              stallwatch diff before after --base-time 36h --new-time 12h --json
            """
    )

    @Argument(help: ArgumentHelp("The older reports: a file, a directory or -.", valueName: "base"))
    var base: String

    @Argument(help: ArgumentHelp("The newer reports.", valueName: "new"))
    var new: String

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Option(
        help: ArgumentHelp(
            "Exit with status 1 if more than chance has one of these changes: new, worse, better, gone.",
            valueName: "words"),
        transform: FailOn.init(parsing:)
    )
    var failOn: FailOn?

    @Option(
        help: ArgumentHelp(
            "The growth of a rate that still counts as the same. Default: \(Tolerance.standard).", valueName: "percent"),
        transform: Tolerance.init(parsing:)
    )
    var tolerance = Tolerance.standard

    @Option(
        help: ArgumentHelp("How long the base was monitored, such as 36h.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var baseTime: DurationArgument?

    @Option(
        help: ArgumentHelp("How long the new side was monitored.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var newTime: DurationArgument?

    @Flag(help: "Show unchanged groups too.")
    var all = false

    @Flag(help: "Fail when a report is faulty (exit status 65) instead of skipping it.")
    var strict = false

    @OptionGroup var terminalOptions: TerminalOptions

    @OptionGroup var formatOptions: FormatOptions

    func validate() throws {
        if base == "-", new == "-" { throw ValidationError("Only one of the two can be standard input.") }
        for time in [baseTime, newTime] where time?.milliseconds == 0 {
            throw ValidationError("A monitored time of 0 gives no rates.")
        }
    }

    func run() throws {
        // A loop or a context may be on one side only.
        let values = FilterValues(filters.filter)
        let reading: ReportReading<ReportSummary> = formatOptions.isForCI ? .explained : .summary
        let before = try ReportSet(
            base, filters: filters, strict: strict, hours: baseTime?.hours, values, reading: reading)
        let after = try ReportSet(
            new, filters: filters, strict: strict, hours: newTime?.hours, values, reading: reading)
        try values.check()
        let comparison = Comparison(base: before, new: after, tolerance: tolerance.share)
        let failing = failOn?.kinds ?? []
        try ClosedOutput.ignored {
            let findings = comparison.changes.map { Finding($0, failing: failing) }
            let markdown = comparison.markdown(showsSame: all)
            switch formatOptions.chosen {
            case .text: try StandardOutput.write(comparison.text(for: terminalOptions.terminal, showsSame: all))
            case .json: try StandardOutput.write(JSONOutput.bytes(comparison))
            case .markdown: try StandardOutput.write(markdown)
            case .github: try CIOutput.printGitHub(findings, summary: markdown)
            case .junit: try StandardOutput.write(JUnitDocument(findings: findings).text)
            }
        }
        let found = failing.map { ($0, comparison.count(of: $0)) }.filter { $0.1 > 0 }
        guard !found.isEmpty else { return }
        StandardError.write("Failed: \(found.map { "\($0.1) \($0.0.rawValue)" }.joined(separator: ", ")).\n")
        throw ExitCode.failure
    }

    struct FailOn: Sendable, Equatable {
        let kinds: [GroupChange.Direction]

        init(parsing text: String) throws {
            kinds = try text.split(separator: ",", omittingEmptySubsequences: false).map { word in
                guard let kind = GroupChange.Direction(rawValue: String(word)), kind != .same else {
                    throw ValidationError(
                        "'\(word)' is not a kind of change. Give new, worse, better or gone, separated by commas.")
                }
                return kind
            }
        }
    }

    struct Tolerance: Sendable, Equatable, CustomStringConvertible {
        let share: Double

        static let standard = Tolerance(share: 0.25)

        private init(share: Double) { self.share = share }

        init(parsing text: String) throws {
            let digits = text.hasSuffix("%") ? text.dropLast() : text[...]
            guard let percent = Double(digits), percent.isFinite, percent >= 0 else {
                throw ValidationError("'\(text)' is not a percentage. Give one such as 25%.")
            }
            share = percent / 100
        }

        var description: String { "\((share * 100).fixed(0))%" }
    }
}

extension DurationArgument {
    fileprivate var hours: Double { milliseconds / 3_600_000 }
}

struct ReportSet: Encodable {
    let groups: StallGroups
    let time: MonitoredTime

    /// `path` is a file, a directory or `-`; `hours` is the monitored time, if known; without reports, nothing stalled.
    init(
        _ path: String, filters: FilterOptions, strict: Bool, hours: Double?, _ values: FilterValues,
        reading: ReportReading<ReportSummary> = .summary
    ) throws {
        let reports = try filters.read([path], strict: strict)
        var spans = ProcessSpans(reports.filter)
        var groups = StallGroups()
        try reports.forEach(reading, side: values) { report, origin in
            spans.add(report)
            groups.add(report, origin)
        }
        self.groups = groups
        time = MonitoredTime(given: hours, statistics: reports.statistics, reports: spans.hours)
    }

    /// Without reports and statistics nothing says how long the programs ran.
    var isTimeKnown: Bool { time.source != .reports || groups.reports > 0 }

    private enum CodingKeys: CodingKey { case reports, count, totalMilliseconds }

    func encode(to encoder: any Encoder) throws {
        try time.encode(to: encoder)
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(groups.reports, forKey: .reports)
        try fields.encode(groups.count, forKey: .count)
        try fields.encode(groups.totalMilliseconds.toMicroseconds, forKey: .totalMilliseconds)
    }
}
