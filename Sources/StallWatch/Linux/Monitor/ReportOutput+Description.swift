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
            @Sendable func sink(_ directory: ReportDirectory) -> DirectorySink {
                DirectorySink(directory, quota: quota, counts: counts, recovered: recovered)
            }
            return SinkDescription(
                name: "stallwatch-dir", events: [.began, .updated, .ended, .suppressed], isStore: true,
                unflushed: opened.flatMap { $0.flush.refusal(of: $0.path) }
            ) {
                guard let opened else {
                    return LateStore { () throws(StallWatchError) in sink(try ReportDirectory(path: path)) }
                }
                return sink(opened)
            }
        case .ndjson(let path, let maximumBytes, let keep):
            try require(
                maximumBytes >= 1 << 20 && (0...1_000).contains(keep),
                "the limits of \(path) are \(maximumBytes) bytes and \(keep) old files: "
                    + "allow at least 1 MiB, and keep 0 to 1,000 files")
            if let descriptor = NDJSONStream.descriptor(named: path) {
                return try NDJSONStream.description(of: descriptor)
            }
            let opened = try FileCreation.inTime { () throws(StallWatchError) in
                let file = FixedFile(path)
                let flush = try NDJSONFile(file, maximumBytes: maximumBytes, keep: keep).check()
                return (file: file, unflushed: flush.refusal(of: file.path))
            }
            return SinkDescription(
                name: "stallwatch-ndj", events: [.ended, .suppressed, .recovered], isStore: true,
                unflushed: opened?.unflushed
            ) {
                guard let opened else {
                    return LateStore { () throws(StallWatchError) in
                        let store = NDJSONFile(FixedFile(path), maximumBytes: maximumBytes, keep: keep)
                        try store.check()
                        return store
                    }
                }
                return NDJSONFile(opened.file, maximumBytes: maximumBytes, keep: keep)
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

/// What a monitor creates on a file system that may hang.
enum FileCreation {
    /// The longest wait of the program's thread for the file system, in nanoseconds.
    static let patience: UInt64 = 2_000_000_000

    /// Runs `body` on a thread of its own; returns `nil` if the file system has not answered in time.
    static func inTime<Value: Sendable>(
        within patience: UInt64 = patience, _ body: @escaping @Sendable () throws(StallWatchError) -> Value
    ) throws(StallWatchError) -> Value? {
        typealias Answer = Result<Value, StallWatchError>
        let call = try? LateCall<Answer>(name: "stallwatch-open") { _ in
            do throws(StallWatchError) { return .success(try body()) } catch { return .failure(error) }
        }
        guard let call else { return try body() }
        return try call.value(until: monotonicNow() &+ patience)?.get()
    }
}

/// A store on a file system that did not answer when the monitor was created: it is opened on the sink's own thread.
final class LateStore: Sink {
    private let open: () throws(StallWatchError) -> any Sink
    private var store: (any Sink)?

    init(open: @escaping () throws(StallWatchError) -> any Sink) { self.open = open }

    private func opened() throws(StallWatchError) -> any Sink {
        if let store { return store }
        let opened = try open()
        opened.start()
        store = opened
        return opened
    }

    func start() { _ = try? opened() }
    func receive(_ delivery: Delivery) throws(StallWatchError) { try opened().receive(delivery) }
    func checkReadiness() throws(StallWatchError) { try opened().checkReadiness() }
    func finish() -> [StallWatchError] { store?.finish() ?? [] }
}

extension HookSink {
    var description: SinkDescription {
        SinkDescription(name: "stallwatch-hook", events: [.began, .ended, .suppressed, .escalated]) { self }
    }
}
