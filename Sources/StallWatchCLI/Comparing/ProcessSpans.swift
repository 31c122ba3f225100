import StallReports

/// Computes from reports alone a lower bound of how long their processes were watched.
struct ProcessSpans {
    private struct Span {
        var start: Int64
        var end: Int64
    }

    private var spans: [ReportSummary.Process: Span] = [:]

    mutating func add(_ report: ReportSummary) {
        let began = report.startedAt.microsecondsSince1970
        let end = began.addingReportingOverflow(Int64(report.durationMilliseconds * 1_000)).partialValue
        let start = min(report.process.startedAt?.microsecondsSince1970 ?? began, began)
        let known = spans[report.process]
        spans[report.process] = Span(start: min(known?.start ?? start, start), end: max(known?.end ?? end, end))
    }

    /// The processes' times added up.
    var hours: Double {
        let microseconds = spans.values.reduce(0.0) { $0 + (Double($1.end) - Double($1.start)) }
        return microseconds / 3_600_000_000
    }
}
