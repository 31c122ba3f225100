import TextOutput

/// The output of `validate --json`.
struct ValidationResult: Encodable {
    private(set) var valid = 0
    private(set) var faulty = 0
    private(set) var faults: [Fault] = []

    struct Fault: Encodable {
        /// The report's file.
        let path: String
        /// The line that the report begins at, in a file with several.
        let line: Int?
        /// The place in the report.
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

    /// The text.
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
