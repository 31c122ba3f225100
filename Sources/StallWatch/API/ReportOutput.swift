import StallReports
public import Logging

#if Metrics
    public import CoreMetrics
#endif

/// A place that receives a monitor's reports.
///
/// An output receives a report when its stall is over, unless the stall is suppressed as a repeat or by the limit per
/// minute. When the monitor starts, it also receives the reports that earlier processes left in the report directory.
///
/// Each output has a thread of its own and never runs on a monitored thread. One that is slow, fails or never returns
/// harms neither the monitor nor the other outputs. If more than 64 reports wait for one, the oldest are dropped and
/// counted in ``MonitorStatistics/reportsLost``.
public struct ReportOutput: Sendable {
    let kind: Kind

    enum Kind: Sendable {
        case directory(String, ReportQuota)
        case ndjson(String, maximumBytes: Int, maximumRotatedFiles: Int)
        case stream(Int32)
        case closure(@Sendable (StallReport) throws -> Void)
        case log(Logger)
        case terminationLog(String)
        case statistics(String)
        #if Metrics
            case metrics((any MetricsFactory)?, Duration)
        #endif
    }

    /// Returns an output that writes one JSON file per stall into a directory.
    ///
    /// The file exists from the threshold on and is updated while the stall lasts. After a failed write the output
    /// retries after 1 second, then 2, 4 … and at last every 5 minutes. It logs the first failure only.
    ///
    /// If the directory cannot be created or written to, ``StallMonitor/init(_:)`` throws, unless the disk is
    /// full or the process has no descriptor left.
    ///
    /// - Parameters:
    ///   - path: The directory. It is created if it does not exist, and stays the same wherever the program changes its
    ///     working or root directory to. Several processes may share it, also of several containers.
    ///   - quota: The directory's limits, at least 1 report and 1 MiB. Beyond them the oldest reports are removed, but
    ///     never those of ongoing stalls. Processes that share it may together exceed them for a while, by about 16
    ///     reports or 1 %.
    /// - Returns: The output.
    public static func directory(_ path: String, quota: ReportQuota = ReportQuota()) -> ReportOutput {
        ReportOutput(kind: .directory(path, quota))
    }

    /// Returns an output that appends one line of JSON per report to a file.
    ///
    /// `/dev/stdout`, `/dev/stderr` and the descriptors of `/dev/fd` and `/proc/self/fd` are written as by
    /// ``ndjson(descriptor:)``, without the limits. If the file cannot be written, or is a FIFO or another special file,
    /// ``StallMonitor/init(_:)`` throws, unless the disk is full, the process has no descriptor left, or another
    /// process keeps the file locked.
    ///
    /// - Parameters:
    ///   - path: The file, in a directory that stays the same. It is created if it does not exist. Several processes may
    ///     share it.
    ///   - maximumBytes: The file's size limit in bytes, at least 1 MiB. If the next line would exceed it, the file is
    ///     renamed to `path.1`, an older `path.1` to `path.2`, and so on.
    ///   - maximumRotatedFiles: The number of renamed files to keep: 0 to 1,000.
    /// - Returns: The output.
    public static func ndjson(
        path: String, maximumBytes: Int = 64 << 20, maximumRotatedFiles: Int = 3
    ) -> ReportOutput {
        ReportOutput(kind: .ndjson(path, maximumBytes: maximumBytes, maximumRotatedFiles: maximumRotatedFiles))
    }

    /// Returns an output that writes one line of JSON per report to an open file, such as standard output in a container.
    ///
    /// The monitor duplicates the descriptor when it is created, so that the app may close its own. It writes each line
    /// as a whole; lines of more than 4 KiB in a pipe may mix with what other threads write meanwhile. If the descriptor
    /// is not open for writing, ``StallMonitor/init(_:)`` throws. A reader of a pipe that stops reading holds up only
    /// this output.
    ///
    /// - Parameter descriptor: A descriptor of a file, a pipe, a socket or a terminal, such as `STDOUT_FILENO`.
    /// - Returns: The output.
    public static func ndjson(descriptor: Int32) -> ReportOutput {
        ReportOutput(kind: .stream(descriptor))
    }

    /// Returns an output that calls `body` with each report.
    ///
    /// - Parameter body: Receives each report. It may block, and it may stop the monitor. It may throw:
    ///   ``MonitorStatistics/failedWrites`` counts its errors.
    /// - Returns: The output.
    public static func closure(_ body: @escaping @Sendable (StallReport) throws -> Void) -> ReportOutput {
        ReportOutput(kind: .closure(body))
    }

    /// Returns an output that logs each stall: its place, its cause and what to do, a line each, and the facts as metadata.
    ///
    /// The level is warning. It is error for a deadlock, which is logged when it is found, for a stall that is overdue
    /// (the escalation) and for one whose end was not observed. Messages about the monitor itself have the level info.
    ///
    /// - Parameter logger: The log to write to.
    /// - Returns: The output.
    public static func log(_ logger: Logger) -> ReportOutput {
        ReportOutput(kind: .log(logger))
    }

    /// Returns an output that writes the sentence of a stall that escalates to a file.
    ///
    /// Kubernetes shows `/dev/termination-log` as the message of a container that has ended. The file is written before
    /// the ``StallMonitor/Configuration/escalation`` acts, which may wait for it for up to 1 second. The text replaces the
    /// file's contents and has at most 4,096 bytes. ``StallMonitor/init(_:)`` throws if there is no escalation.
    ///
    /// - Parameter path: The file.
    /// - Returns: The output.
    public static func terminationLog(_ path: String) -> ReportOutput { ReportOutput(kind: .terminationLog(path)) }

    /// Returns an output that writes ``StallMonitor/statistics`` to a file as JSON, when the monitor stops.
    ///
    /// - Parameter path: The file, which is replaced.
    /// - Returns: The output.
    public static func statistics(_ path: String) -> ReportOutput { ReportOutput(kind: .statistics(path)) }

    func check(escalates: Bool) throws(StallWatchError) {
        if case .statistics(let path) = kind {
            try require(path != "", "the path of the statistics is empty: name a file")
        }
        guard case .terminationLog(let path) = kind else { return }
        try require(path != "", "the termination log's path is empty: name a file")
        try require(
            escalates, "a termination log is only written when a stall escalates: set escalation, too")
    }
}

#if Metrics
    extension ReportOutput {
        /// Returns an output that counts every stall in swift-metrics, reported or not.
        ///
        /// | metric | type | dimensions |
        /// | --- | --- | --- |
        /// | `stallwatch.stalls` | counter | `kind`, `loop`, `cause` |
        /// | `stallwatch.stall.duration` | timer | `kind`, `loop`, `cause` |
        /// | `stallwatch.watchdog.lateness` | timer | |
        /// | `stallwatch.missed`: stalls that were over when the watchdog looked | counter | |
        /// | `stallwatch.suppressed` | counter | `reason`: `repeated` or `rateLimit` |
        /// | `stallwatch.eventloop.turns` | counter | `loop` |
        /// | `stallwatch.eventloop.delay.mean`, `.p50`, `.p90`, `.p99`, `.max` | gauge, seconds | `loop` |
        /// | `stallwatch.eventloop.utilization` | gauge, 0 to 1 | `loop` |
        /// | `stallwatch.eventloop.threshold` | gauge, seconds | `loop` |
        ///
        /// The names after `eventloop` are those of OpenTelemetry for Node.js. They describe the turns of an interval: of a
        /// run loop or a probe their durations, of other loops the times until heartbeats have run, which are sent only to a
        /// loop that has work. Utilization is that of loops that report their turns, with the turn in progress. An interval
        /// ends when the watchdog next polls the loops: a process without work is not woken, and its gauges keep their values
        /// until it has work again.
        ///
        /// A stall is counted once: when it is over, or when the next process finds its report abandoned. Each metric
        /// is created on first use and then kept. The number of metrics is the number of watched loops and of names of
        /// operations, times the few kinds and causes. From a thousand on, `loop` is `other`.
        ///
        /// `cause` is a raw value of ``StallReport/CauseKind``, or `saturated`, `spinning`, `mode` or `notRun`. It is
        /// `unknown` for any other stall without a cause, and for causes of a later version: no value comes from outside.
        ///
        /// - Parameters:
        ///   - factory: The factory of the metrics; `nil` for the one that the app has bootstrapped.
        ///   - interval: The least length of an interval: 1 second to 1 hour. Otherwise ``StallMonitor/init(_:)`` throws.
        /// - Returns: The output.
        public static func metrics(
            factory: (any MetricsFactory)? = nil, every interval: Duration = .seconds(60)
        ) -> ReportOutput {
            ReportOutput(kind: .metrics(factory, interval))
        }
    }
#endif
