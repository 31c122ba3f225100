import StallReports

/// Why a file or document was skipped, in words.
struct UnreadableReport: Error, Equatable {
    let reason: String

    init(_ reason: String) { self.reason = reason }

    /// A report with a schema version that this program does not know.
    init(newerVersion version: Int) {
        self.init(
            "the report has schema version \(version), and this version reads up to "
                + "\(StallReport.currentSchemaVersion): use a newer StallWatch"
        )
    }
}
