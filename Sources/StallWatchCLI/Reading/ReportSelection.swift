import ArgumentParser

/// The reports that a command works on: paths, and which of the reports there.
struct ReportSelection: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Report files, NDJSON files, directories (searched), or - for standard input.", valueName: "path")
    )
    var paths: [String]

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Flag(help: "Fail when a report is faulty (exit status 65) instead of passing it over.")
    var strict = false

    /// Finds the files.
    ///
    /// - Throws: A ``CommandFailure`` when a path cannot be read.
    func read() throws -> ReadReports { try filters.read(paths, strict: strict) }
}

/// Which reports are wanted.
struct FilterOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Stalls that began at this time or later: 2026-11-21T08:00, 2026-11-21, or 2h for two hours ago. UTC.",
            valueName: "time"),
        transform: TimeArgument.init(parsing:)
    )
    var since: TimeArgument?

    @Option(
        help: ArgumentHelp("Stalls that began before this time.", valueName: "time"),
        transform: TimeArgument.init(parsing:))
    var until: TimeArgument?

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "The loop's label. May be given several times, as may those that follow.", valueName: "label"))
    var loop: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "What the time went to: cpu, lock, io, sleep, syscall, paging, cpuContention, throttled, deadlock or unknown.",
            valueName: "word"))
    var cause: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("What kind of lateness: stall, saturation or starvation.", valueName: "word"))
    var kind: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A part of the name of a function on one of the stacks.", valueName: "text"))
    var function: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The fingerprint, or how it begins.", valueName: "digits"))
    var fingerprint: [String] = []

    @Option(parsing: .unconditionalSingleValue, help: ArgumentHelp("The process's name or id.", valueName: "name"))
    var process: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A pair of the metadata; all that are given have to be there.", valueName: "key=value"),
        transform: ReportFilter.MetadataCondition.init(parsing:)
    )
    var metadata: [ReportFilter.MetadataCondition] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Stalls of this duration or longer, such as 500ms or 2s.", valueName: "duration"),
        transform: DurationArgument.init(parsing:)
    )
    var min: DurationArgument?

    /// The options as a filter.
    var filter: ReportFilter {
        ReportFilter(
            since: since?.time, until: until?.time, loops: loop, causes: cause, kinds: kind, functions: function,
            fingerprints: fingerprint, minimumMilliseconds: min?.milliseconds ?? 0, processes: process,
            metadata: metadata
        )
    }

    /// Finds the files at `paths`, for commands with paths of their own.
    ///
    /// - Throws: A ``CommandFailure`` when a path cannot be read.
    func read(_ paths: [String], strict: Bool) throws -> ReadReports {
        ReadReports(files: try ReportFiles(paths: paths), filter: filter, isStrict: strict)
    }
}
