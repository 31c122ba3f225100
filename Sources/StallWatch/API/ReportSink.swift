import StallReports
public import Logging

/// One of the places that a monitor's reports go to.
///
/// Each sink has a thread of its own: one that is slow, fails or never comes back harms neither the monitor nor the
/// other sinks. It misses the oldest of what waits for it once 64 reports do, which
/// ``StallMonitor/Statistics/reportsLost`` counts. Nothing of a sink ever runs on a monitored thread.
///
/// Sinks get a report when its stall is over, unless it is held back as a repeat; and at the start, the reports that an
/// earlier process left in the directory.
public struct ReportSink: Sendable {
    /// What is needed to make it; may check that it can work.
    let describe: SinkFactory

    /// One JSON file a stall in the directory at `path`, from the threshold on; made where it is missing.
    ///
    /// A write that fails is tried again after 1 second, then 2, 4 … up to 5 minutes, and the log is told once.
    ///
    /// - Parameters:
    ///   - path: The directory. Processes may share it.
    ///   - quota: How much it may hold; past it, the oldest reports are removed, but never those of stalls that still last.
    /// - Returns: The sink.
    public static func directory(_ path: String, quota: ReportQuota = ReportQuota()) -> ReportSink {
        ReportSink { counts, recovered throws(StallWatchError) in
            guard quota.reports >= 1, quota.bytes >= 1 << 20 else {
                throw StallWatchError(
                    .invalidConfiguration, "the quota of \(path) is too small: allow 1 report and 1 MiB at least"
                )
            }
            let directory = try ReportDirectory(path: path)
            return SinkDescription(
                name: "stallwatch-dir", interest: [.began, .updated, .ended, .suppressed], isStore: true
            ) {
                DirectorySink(directory, quota: quota, counts: counts, recovered: recovered)
            }
        }
    }

    /// One line of JSON a report, added to the file at `path`.
    ///
    /// - Parameters:
    ///   - path: The file. Processes may share it.
    ///   - maximumBytes: When the next line would make the file larger, it is moved to `path.1`, and that to `path.2` …
    ///     1 MiB at least.
    ///   - keep: How many moved files are kept: 0 to 1,000.
    /// - Returns: The sink.
    public static func ndjson(path: String, maximumBytes: Int = 64 << 20, keep: Int = 3) -> ReportSink {
        ReportSink { _, _ throws(StallWatchError) in
            guard maximumBytes >= 1 << 20, (0...1_000).contains(keep) else {
                throw StallWatchError(
                    .invalidConfiguration,
                    "the limits of \(path) are out of range: allow 1 MiB at least, and keep 0 to 1,000 files"
                )
            }
            let check = NDJSONFile(path: path, maximumBytes: maximumBytes, keep: keep)
            try check.check()
            return SinkDescription(name: "stallwatch-ndj", interest: .finished, isStore: true) {
                NDJSONFile(path: path, maximumBytes: maximumBytes, keep: keep)
            }
        }
    }

    /// A closure of the app.
    ///
    /// It may block, throw (``StallMonitor/Statistics/failedWrites`` counts it) and stop the monitor.
    public static func closure(_ body: @escaping @Sendable (StallReport) throws -> Void) -> ReportSink {
        ReportSink { _, _ in
            SinkDescription(name: "stallwatch-app", interest: .finished) { ClosureSink(body) }
        }
    }

    /// One line a stall in a log, at level info, with the facts as metadata.
    public static func log(_ logger: Logger) -> ReportSink {
        ReportSink { _, _ in
            SinkDescription(name: "stallwatch-log", interest: [.ended, .recovered, .notice]) { LogSink(logger) }
        }
    }

    /// The app's hooks.
    static func hooks(_ hooks: HookSink.Hooks) -> ReportSink {
        ReportSink { _, _ in
            SinkDescription(name: "stallwatch-hook", interest: [.began, .ended, .suppressed, .escalated]) {
                HookSink(hooks)
            }
        }
    }
}
