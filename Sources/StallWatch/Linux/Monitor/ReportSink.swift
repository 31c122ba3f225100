import StallReports
public import Logging

/// A destination for a monitor's reports.
///
/// A sink receives a report when its stall is over, unless the stall is suppressed as a repeat or by the limit per
/// minute. When the monitor starts, it also receives the reports that earlier processes left in the report directory.
///
/// Each sink has a thread of its own and never runs on a monitored thread. A sink that is slow, fails or never returns
/// harms neither the monitor nor the other sinks. If more than 64 reports wait for a sink, the oldest are dropped and
/// counted in ``StallMonitor/Statistics/reportsLost``.
public struct ReportSink: Sendable {
    let describe: SinkFactory

    /// Returns a sink that writes one JSON file per stall into a directory.
    ///
    /// The file exists from the threshold on and is updated while the stall lasts. After a failed write the sink
    /// retries after 1 second, then 2, 4 … and at last every 5 minutes. It logs the first failure only.
    ///
    /// If the directory cannot be created or written to, ``StallMonitor/init(_:)`` throws.
    ///
    /// - Parameters:
    ///   - path: The directory. It is created if it does not exist. Several processes may share it.
    ///   - quota: The directory's limits, at least 1 report and 1 MiB. Beyond them the oldest reports are removed, but
    ///     never those of ongoing stalls.
    /// - Returns: The sink.
    public static func directory(_ path: String, quota: ReportQuota = ReportQuota()) -> ReportSink {
        ReportSink { counts, recovered throws(StallWatchError) in
            guard quota.reports >= 1, quota.bytes >= 1 << 20 else {
                throw StallWatchError(
                    .invalidConfiguration,
                    "the quota of \(path) is \(quota.reports) reports and \(quota.bytes) bytes: "
                        + "allow at least 1 report and 1 MiB"
                )
            }
            let directory = try ReportDirectory(path: path)
            return SinkDescription(
                name: "stallwatch-dir", interest: [.began, .updated, .ended, .suppressed], isStore: true,
                unflushed: directory.flush.refusal(of: path)
            ) {
                DirectorySink(directory, quota: quota, counts: counts, recovered: recovered)
            }
        }
    }

    /// Returns a sink that appends one line of JSON per report to a file.
    ///
    /// `/dev/stdout`, `/dev/stderr` and the descriptors of `/dev/fd` and `/proc/self/fd` are written as by
    /// ``ndjson(descriptor:)``, without the limits. If the file cannot be written, or is a FIFO or another special file,
    /// ``StallMonitor/init(_:)`` throws.
    ///
    /// - Parameters:
    ///   - path: The file. It is created if it does not exist. Several processes may share it.
    ///   - maximumBytes: The file's size limit in bytes, at least 1 MiB. If the next line would exceed it, the file is
    ///     renamed to `path.1`, an older `path.1` to `path.2`, and so on.
    ///   - keep: The number of renamed files to keep: 0 to 1,000.
    /// - Returns: The sink.
    public static func ndjson(path: String, maximumBytes: Int = 64 << 20, keep: Int = 3) -> ReportSink {
        ReportSink { _, _ throws(StallWatchError) in
            guard maximumBytes >= 1 << 20, (0...1_000).contains(keep) else {
                throw StallWatchError(
                    .invalidConfiguration,
                    "the limits of \(path) are \(maximumBytes) bytes and \(keep) old files: "
                        + "allow at least 1 MiB, and keep 0 to 1,000 files"
                )
            }
            if let descriptor = NDJSONStream.descriptor(named: path) {
                return try NDJSONStream.description(of: descriptor)
            }
            let check = NDJSONFile(path: path, maximumBytes: maximumBytes, keep: keep)
            let unflushed = try check.check().refusal(of: path)
            return SinkDescription(
                name: "stallwatch-ndj", interest: [.ended, .suppressed, .recovered], isStore: true, unflushed: unflushed
            ) {
                NDJSONFile(path: path, maximumBytes: maximumBytes, keep: keep)
            }
        }
    }

    /// Returns a sink that writes one line of JSON per report to an open file, such as standard output in a container.
    ///
    /// The monitor duplicates the descriptor when it is created, so that the app may close its own. It writes each line
    /// as a whole; lines of more than 4 KiB in a pipe may mix with what other threads write meanwhile. If the descriptor
    /// is not open for writing, ``StallMonitor/init(_:)`` throws. A reader of a pipe that stops reading holds up only
    /// this sink.
    ///
    /// - Parameter descriptor: A descriptor of a file, a pipe, a socket or a terminal, such as `STDOUT_FILENO`.
    /// - Returns: The sink.
    public static func ndjson(descriptor: Int32) -> ReportSink {
        ReportSink { _, _ throws(StallWatchError) in try NDJSONStream.description(of: descriptor) }
    }

    /// Returns a sink that calls `body` with each report.
    ///
    /// - Parameter body: Receives each report. It may block, and it may stop the monitor. It may throw:
    ///   ``StallMonitor/Statistics/failedWrites`` counts its errors.
    /// - Returns: The sink.
    public static func closure(_ body: @escaping @Sendable (StallReport) throws -> Void) -> ReportSink {
        ReportSink { _, _ in
            SinkDescription(name: "stallwatch-app", interest: .finished) { ClosureSink(body) }
        }
    }

    /// Returns a sink that logs one line per stall at level info, with the facts as metadata.
    ///
    /// - Parameter logger: The log to write to.
    /// - Returns: The sink.
    public static func log(_ logger: Logger) -> ReportSink {
        ReportSink { _, _ in
            SinkDescription(name: "stallwatch-log", interest: [.ended, .recovered, .notice]) { LogSink(logger) }
        }
    }

    static func hooks(_ hooks: HookSink.Hooks) -> ReportSink {
        ReportSink { _, _ in
            SinkDescription(name: "stallwatch-hook", interest: [.began, .ended, .suppressed, .escalated]) {
                HookSink(hooks)
            }
        }
    }
}
