import ArgumentParser
import StallReports
import TextOutput

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
            StallReport.faults(in: bytes)
        } skipped: { origin, reason in
            result.add([ReportFault(path: "$", message: reason)], origin)
        } body: { faults, origin in
            result.add(faults, origin)
        }
        try ClosedOutput.ignored {
            if json { return try StandardOutput.write(JSONOutput.bytes(result)) }
            try StandardOutput.write(result.text)
        }
        if result.faulty > 0 { throw ExitCode(CommandFailure.Status.faultyData.rawValue) }
    }
}

/// The output of `validate --json`.
struct ValidationResult: Encodable {
    private(set) var valid = 0
    private(set) var faulty = 0
    private(set) var faults: [Fault] = []

    struct Fault: Encodable {
        let path: String
        /// The line that the report begins at, in a file with several.
        let line: Int?
        let place: String
        let message: String
    }

    /// The text shows a fault for this many reports and counts the others.
    private static let shownReports = 3

    mutating func add(_ faults: [ReportFault], _ origin: ReportOrigin) {
        guard !faults.isEmpty else { return valid += 1 }
        faulty += 1
        self.faults += faults.map {
            Fault(path: origin.path, line: origin.line, place: $0.path, message: $0.message)
        }
    }

    var text: String {
        var counts: [ReportFault: Int] = [:]
        var order: [ReportFault] = []
        var text = ""
        for found in faults {
            let fault = ReportFault(path: found.place, message: found.message)
            let count = (counts[fault] ?? 0) + 1
            counts[fault] = count
            if count == Self.shownReports + 1 { order.append(fault) }
            guard count <= Self.shownReports else { continue }
            text += "\(ReportOrigin(path: found.path, line: found.line)): \(fault)".printable + "\n"
        }
        for fault in order {
            let count = (counts[fault] ?? 0) - Self.shownReports
            text += "\(counted(count, "more report has", "more reports have")) this fault: \(fault)".printable + "\n"
        }
        return text + "\(valid) valid, \(faulty) faulty\n"
    }
}
