import StallReports
import ArgumentParser

/// Whether reports are what the schema says.
struct ValidateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "validate",
        abstract: "Check reports against their JSON schema, and name each fault by its path.",
        discussion: """
            Beside the schema, which is built in, every index has to lead somewhere. Fields and words that the schema does not \
            list are no faults: a newer version may have added them. Exit status: 65 when a report is faulty.

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

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let checker = try ReportSchema.checker()
        let reports = ReadReports(files: try ReportFiles(paths: paths), filter: ReportFilter(), isStrict: false)
        var result = ValidationResult()
        var text = ""
        try reports.forEachDocument { bytes throws(UnreadableReport) in
            Parsed(bytes)
        } body: { parsed, origin in
            let faults = parsed.faults(by: checker)
            result.add(faults, origin)
            guard !json else { return }
            for fault in faults { text += "\(origin): \(fault.path): \(fault.message)".printable + "\n" }
            if text.utf8.count > 1 << 16 {
                try StandardOutput.write(text)
                text = ""
            }
        }
        if json {
            try StandardOutput.write(JSONOutput.bytes(result))
        } else {
            try StandardOutput.write("\(text)\(result.valid) valid, \(result.faulty) faulty\n")
        }
        if result.faulty > 0 { throw ExitCode(CommandFailure.Status.faultyData.rawValue) }
    }

    /// A report as far as several threads can look at it: the checker is one thread's.
    struct Parsed: Sendable {
        private let document: Result<JSONValue, JSONFault>
        /// What the library says of it; `nil` if it reads it.
        private let refusal: String?

        init(_ bytes: [UInt8]) {
            document = Result { () throws(JSONFault) in try JSONValue(json: bytes) }
            do throws(StallWatchError) {
                _ = try StallReport(jsonData: bytes)
                refusal = nil
            } catch {
                refusal = error.description
            }
        }

        /// Every fault; none if the report is valid.
        func faults(by checker: SchemaChecker) -> [SchemaChecker.Fault] {
            switch document {
            case .failure(let fault):
                return [.init(path: "$", message: "it is not JSON: \(fault.reason), at byte \(fault.position)")]
            case .success(let document):
                let faults = checker.faults(in: document)
                guard faults.isEmpty, let refusal else { return faults }
                return [.init(path: "$", message: refusal)]
            }
        }
    }
}

/// What `validate --json` prints.
struct ValidationResult: Encodable {
    private(set) var valid = 0
    private(set) var faulty = 0
    private(set) var faults: [Fault] = []

    struct Fault: Encodable {
        /// The report's file.
        let path: String
        /// The line that the report begins at, where a file may have several.
        let line: Int?
        /// Where in the report.
        let place: String
        let message: String
    }

    mutating func add(_ faults: [SchemaChecker.Fault], _ origin: ReportOrigin) {
        guard !faults.isEmpty else { return valid += 1 }
        faulty += 1
        self.faults += faults.map {
            Fault(path: origin.path, line: origin.line, place: $0.path, message: $0.message)
        }
    }
}
