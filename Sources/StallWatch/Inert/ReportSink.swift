public import Logging
public import StallReports

/// A destination for reports, which receives none on this platform.
public struct ReportSink: Sendable {
    /// Returns a sink that writes nothing.
    ///
    /// - Parameters:
    ///   - path: A directory, which is not created.
    ///   - quota: The directory's limits.
    /// - Returns: The sink.
    public static func directory(_ path: String, quota: ReportQuota = ReportQuota()) -> ReportSink { ReportSink() }

    /// Returns a sink that writes nothing.
    ///
    /// - Parameters:
    ///   - path: A file, which is not created.
    ///   - maximumBytes: The file's size limit in bytes.
    ///   - keep: The number of renamed files to keep.
    /// - Returns: The sink.
    public static func ndjson(path: String, maximumBytes: Int = 64 << 20, keep: Int = 3) -> ReportSink { ReportSink() }

    /// Returns a sink that never calls `body`.
    ///
    /// - Parameter body: The closure.
    /// - Returns: The sink.
    public static func closure(_ body: @escaping @Sendable (StallReport) throws -> Void) -> ReportSink { ReportSink() }

    /// Returns a sink that logs nothing.
    ///
    /// - Parameter logger: The log.
    /// - Returns: The sink.
    public static func log(_ logger: Logger) -> ReportSink { ReportSink() }
}

#if Metrics
    public import CoreMetrics

    extension ReportSink {
        /// Returns a sink that counts nothing.
        ///
        /// - Parameters:
        ///   - factory: The factory of the metrics.
        ///   - interval: The least length of an interval.
        /// - Returns: The sink.
        public static func metrics(
            factory: (any MetricsFactory)? = nil, every interval: Duration = .seconds(60)
        ) -> ReportSink { ReportSink() }
    }
#endif
