import ArgumentParser

/// What got worse, better, new or gone from one set of reports to another.
struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Compare two sets of reports: what is new, worse, better, gone.",
        discussion: """
            Groups of stalls are compared by the time that is lost to them per hour of monitored time. That is taken from --base-time \
            and --new-time, else from statistics files in the directories, else from the reports' processes, from their \
            start to the end of their last stall. A group is worse when it loses more time than before by more than \
            --tolerance, and either its stalls take longer or there are more of them than chance explains (two standard \
            deviations).

            Examples:
              stallwatch diff last-week this-week
              stallwatch diff main-branch pull-request --fail-on new,worse
              stallwatch diff before after --base-time 36h --new-time 12h --json
            """
    )

    @Argument(help: ArgumentHelp("The reports to compare with: a file, a directory or -.", valueName: "base"))
    var base: String

    @Argument(help: ArgumentHelp("The reports to judge.", valueName: "new"))
    var new: String

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Option(
        help: ArgumentHelp(
            "Exit with status 1 if there is one of these: new, worse, better, gone.", valueName: "words"),
        transform: FailOn.init(parsing:)
    )
    var failOn: FailOn?

    @Option(
        help: ArgumentHelp(
            "By how much a rate may grow and still be the same. Default: \(Tolerance.standard).", valueName: "percent"),
        transform: Tolerance.init(parsing:)
    )
    var tolerance = Tolerance.standard

    @Option(
        help: ArgumentHelp("For how long the base was monitored, such as 36h.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var baseTime: DurationArgument?

    @Option(
        help: ArgumentHelp("For how long the new one was monitored.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var newTime: DurationArgument?

    @Flag(help: "Show groups that are the same, too.")
    var all = false

    @Flag(help: "Fail when a report is faulty (exit status 65) instead of passing it over.")
    var strict = false

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        if base == "-", new == "-" { throw ValidationError("Standard input can be one of the two only.") }
        for time in [baseTime, newTime] where time?.milliseconds == 0 {
            throw ValidationError("A monitored time of nothing gives no rates.")
        }
    }

    func run() throws {
        let before = try ReportSet(base, filters: filters, strict: strict, hours: baseTime?.hours)
        let after = try ReportSet(new, filters: filters, strict: strict, hours: newTime?.hours)
        let comparison = Comparison(base: before, new: after, tolerance: tolerance.share)
        do {
            if json {
                try StandardOutput.write(JSONOutput.bytes(ComparisonReport(comparison)))
            } else {
                try StandardOutput.write(comparison.text(for: .standardOutput, showsSame: all))
            }
        } catch is ReaderGone {
            // The verdict is in the exit status all the same.
        }
        let found = (failOn?.verdicts ?? []).map { ($0, comparison.count(of: $0)) }.filter { $0.1 > 0 }
        guard !found.isEmpty else { return }
        StandardError.write("Failed: \(found.map { "\($0.1) \($0.0.rawValue)" }.joined(separator: ", ")).\n")
        throw ExitCode.failure
    }

    /// What `--fail-on` lists.
    struct FailOn: Sendable, Equatable {
        let verdicts: [GroupChange.Kind]

        init(parsing text: String) throws {
            verdicts = try text.split(separator: ",", omittingEmptySubsequences: false).map { word in
                guard let verdict = GroupChange.Kind(rawValue: String(word)), verdict != .same else {
                    throw ValidationError(
                        "'\(text)' has '\(word)' in it: give new, worse, better or gone, with commas between.")
                }
                return verdict
            }
        }
    }

    /// A part in percent.
    struct Tolerance: Sendable, Equatable, CustomStringConvertible {
        let share: Double

        static let standard = Tolerance(share: 0.25)

        private init(share: Double) { self.share = share }

        init(parsing text: String) throws {
            let digits = text.hasSuffix("%") ? text.dropLast() : text[...]
            guard let percent = Double(digits), percent.isFinite, percent >= 0 else {
                throw ValidationError("'\(text)' is no part: give percents, such as 25%.")
            }
            share = percent / 100
        }

        var description: String { "\((share * 100).fixed(0))%" }
    }
}

extension DurationArgument {
    /// In hours.
    fileprivate var hours: Double { milliseconds / 3_600_000 }
}
