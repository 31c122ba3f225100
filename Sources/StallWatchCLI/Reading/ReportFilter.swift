import StallReports

/// The filters for reports.
struct ReportFilter: Sendable, Equatable {
    var since: Timestamp?
    var until: Timestamp?
    var loops: [String] = []
    var causes: [String] = []
    var kinds: [String] = []
    var contexts: [String] = []
    var functions: [String] = []
    var fingerprints: [String] = []
    var minimumMilliseconds = 0.0
    var processes: [String] = []
    var metadata: [MetadataCondition] = []

    /// A key of the metadata with its value.
    struct MetadataCondition: Sendable, Equatable {
        var key: String
        var value: String
    }

    /// Whether every report matches.
    var isEmpty: Bool { self == ReportFilter() }

    /// Whether ``ReportSummary/functions`` is needed.
    var needsFunctions: Bool { !functions.isEmpty }

    /// Whether the report matches every kind of condition, and at least one condition of each kind.
    ///
    /// Of metadata, every pair has to match.
    func matches(_ report: ReportSummary) -> Bool {
        func isIn(_ wanted: [String], _ value: String?) -> Bool { wanted.isEmpty || value.map(wanted.contains) == true }
        if let since, report.startedAt < since { return false }
        if let until, report.startedAt >= until { return false }
        return report.durationMilliseconds >= minimumMilliseconds
            && isIn(loops, report.loop)
            && isIn(causes, report.cause?.rawValue)
            && isIn(kinds, report.kind.rawValue)
            && isIn(contexts, report.context)
            && (fingerprints.isEmpty || fingerprints.contains { report.fingerprint?.hasPrefix($0) == true })
            && (processes.isEmpty
                || processes.contains { $0 == report.process.name || $0 == String(report.process.pid) })
            && (functions.isEmpty || functions.contains { text in report.functions.contains { $0.contains(text) } })
            && metadata.allSatisfy { report.metadata[$0.key] == $0.value }
    }
}
