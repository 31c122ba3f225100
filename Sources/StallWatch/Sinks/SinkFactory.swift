import StallReports

/// Checks that a sink can work and returns its description.
///
/// The second parameter receives the reports that an earlier process left.
typealias SinkFactory =
    @Sendable (ReportCounts, _ recovered: @escaping @Sendable (StallReport) -> Void) throws(StallWatchError)
    -> SinkDescription
