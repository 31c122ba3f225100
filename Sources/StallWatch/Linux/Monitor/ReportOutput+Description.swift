import LinuxSupport
import StallReports

#if Metrics
    import CoreMetrics
#endif

extension ReportOutput {
    /// Returns a factory of the output's sink; that of a log names the files in `directory`.
    func factory(in directory: String? = nil) -> SinkFactory {
        { counts, recovered throws(StallWatchError) in try describe(counts, recovered, directory) }
    }

    private func describe(
        _ counts: ReportCounts, _ recovered: @escaping @Sendable (StallReport) -> Void, _ monitorDirectory: String?
    ) throws(StallWatchError) -> SinkDescription? {
        switch kind {
        // The monitor itself writes these.
        case .terminationLog, .statistics: return nil
        case .directory(let path, let quota):
            try require(
                quota.reports >= 1 && quota.bytes >= 1 << 20,
                "the quota of \(path) is \(quota.reports) reports and \(quota.bytes) bytes: "
                    + "allow at least 1 report and 1 MiB")
            let opened = try FileCreation.inTime { () throws(StallWatchError) in try ReportDirectory(path: path) }
            // The program may change its working directory before it is opened.
            let laterPath = absolutePath(path) ?? path
            return SinkDescription(
                name: "stallwatch-dir", events: [.began, .updated, .ended, .suppressed], isStore: true,
                unflushed: opened.flatMap { $0.flush.refusal(of: $0.path) }
            ) {
                LateStore.sink(of: opened) { () throws(StallWatchError) in
                    try ReportDirectory(path: laterPath)
                } making: {
                    DirectorySink($0, quota: quota, counts: counts, recovered: recovered)
                }
            }
        case .ndjson(let path, let maximumBytes, let keep):
            try require(
                maximumBytes >= 1 << 20 && (0...1_000).contains(keep),
                "the limits of \(path) are \(maximumBytes) bytes and \(keep) old files: "
                    + "allow at least 1 MiB, and keep 0 to 1,000 files")
            if let descriptor = NDJSONStream.descriptor(named: path) {
                return try NDJSONStream.description(of: descriptor)
            }
            @Sendable func open(_ path: String) throws(StallWatchError) -> (file: FixedFile, unflushed: String?) {
                let file = FixedFile(path)
                let flush = try NDJSONFile(file, maximumBytes: maximumBytes, keep: keep).check()
                return (file, flush.refusal(of: file.path))
            }
            let opened = try FileCreation.inTime { () throws(StallWatchError) in try open(path) }
            let laterPath = absolutePath(path) ?? path
            return SinkDescription(
                name: "stallwatch-ndj", events: [.ended, .suppressed, .recovered], isStore: true,
                unflushed: opened?.unflushed
            ) {
                LateStore.sink(of: opened) { () throws(StallWatchError) in
                    try open(laterPath)
                } making: {
                    NDJSONFile($0.file, maximumBytes: maximumBytes, keep: keep)
                }
            }
        case .stream(let descriptor): return try NDJSONStream.description(of: descriptor)
        case .closure(let body):
            return SinkDescription(name: "stallwatch-app", events: [.ended, .recovered]) { ClosureSink(body: body) }
        case .log(let logger):
            return SinkDescription(
                name: "stallwatch-log", events: [.began, .updated, .ended, .recovered, .escalated, .notice]
            ) {
                LogSink(logger, directory: monitorDirectory)
            }
        #if Metrics
            case .metrics(let factory, let interval):
                try require(
                    (.seconds(1)...(.seconds(3_600))).contains(interval),
                    "the interval of the metrics is \(interval): give a value from 1 second to 1 hour")
                return SinkDescription(
                    name: "stallwatch-met", events: [.ended, .suppressed, .recovered, .interval],
                    intervalLength: nanoseconds(interval)
                ) {
                    MetricsSink(factory ?? MetricsSystem.factory)
                }
        #endif
        }
    }
}

extension HookSink {
    var description: SinkDescription {
        SinkDescription(name: "stallwatch-hook", events: [.began, .ended, .suppressed, .escalated]) { self }
    }
}
