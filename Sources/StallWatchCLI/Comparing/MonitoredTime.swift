import StallReports

/// For how long programs were watched while they wrote reports: what rates are taken of.
struct MonitoredTime: Sendable, Equatable {
    /// Where the time is known from.
    enum Source: String, Encodable, Sendable {
        /// It was given on the command line.
        case given
        /// From statistics files beside the reports.
        case statistics
        /// From the processes' starts to the ends of their last stalls: less than it was.
        case reports
    }

    var hours: Double
    var source: Source

    /// The least that is taken for the time, so that rates are finite: one second.
    static let minimumHours = 1.0 / 3_600

    init(hours: Double, source: Source) {
        self.hours = max(hours, Self.minimumHours)
        self.source = source
    }
}

/// Works out, from reports alone, for how long their processes were watched at least.
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
