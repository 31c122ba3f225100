import ArgumentParser

/// The reports that a command works on: paths and filters.
struct ReportSelection: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Report files, NDJSON files, directories (searched), or - for standard input.", valueName: "path")
    )
    var paths: [String]

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Flag(help: "Fail when a report is faulty (exit status 65) instead of skipping it.")
    var strict = false

    /// Finds the files.
    ///
    /// - Throws: A ``CommandFailure`` when a path cannot be read.
    func read() throws -> ReadReports { try filters.read(paths, strict: strict) }
}
