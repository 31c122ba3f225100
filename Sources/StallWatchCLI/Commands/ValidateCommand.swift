import StallReports
import ArgumentParser

/// Checks whether reports are valid.
struct ValidateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "validate",
        abstract: "Check reports and name the place of each fault.",
        discussion: """
            Checks that every field has its type, every required field is there, and every value is in its range. Unknown fields \
            and words are allowed: a newer version may have added them. When more than 3 reports have the same fault, the \
            others are counted. Exit status: 65 when a report is faulty.

            Examples:
              stallwatch validate stalls
              ssh host cat /var/log/notes.ndjson | stallwatch validate - --json
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Report files, NDJSON files, directories (searched), or - for standard input.", valueName: "path")
    )
    var paths: [String]

    @Flag(help: "Print JSON, with every fault.")
    var json = false

    func run() throws {
        let reports = ReadReports(files: try ReportFiles(paths: paths), filter: ReportFilter(), isStrict: false)
        var result = ValidationResult()
        try reports.forEachDocument { bytes throws(UnreadableReport) in
            ReportRules.faults(in: bytes)
        } body: { faults, origin in
            result.add(faults, origin)
        }
        try StandardOutput.write(json ? JSONOutput.bytes(result) : Array(result.text.utf8))
        if result.faulty > 0 { throw ExitCode(CommandFailure.Status.faultyData.rawValue) }
    }
}
