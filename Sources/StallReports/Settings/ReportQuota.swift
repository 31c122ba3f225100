/// The limits of a report directory.
public struct ReportQuota: Sendable, Equatable {
    /// The maximum number of reports; at least 1.
    public var reports: Int
    /// The maximum total size of the reports in bytes; at least 1 MiB.
    public var bytes: Int

    /// Creates a quota.
    ///
    /// A report takes some tens of kilobytes.
    ///
    /// - Parameters:
    ///   - reports: The maximum number of reports; 1,000 by default.
    ///   - bytes: The maximum total size in bytes; 128 MiB by default.
    public init(reports: Int = 1_000, bytes: Int = 128 << 20) {
        self.reports = reports
        self.bytes = bytes
    }
}
