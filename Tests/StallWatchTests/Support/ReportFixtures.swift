import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallSymbols
@testable import StackCapture
@testable import StallWatch

extension Reporter.Settings {
    /// A builder that names the app's function at `0x1000 + n` `work<n>`.
    static func fixture(process: StallReport.ProcessDescription = .current()) -> Self {
        Self(patience: TestSupport.patience) {
            let names = (0..<64).map { (UInt64(0x1000 + $0), "work\($0)") }
            let symbols = ["app": Dictionary(uniqueKeysWithValues: names)]
            return .stub(process: process, TableSymbolicator(symbols: symbols))
        }
    }
}

extension StallRecord {
    /// A stall in the app's function `work<function>`.
    static func fixture(
        function: Int = 0, loop: String = "main", state: StallRecord.State = .ended, milliseconds: UInt64 = 400
    ) -> StallRecord {
        let startedAt = Timestamp(wallClockNanoseconds: wallClockNow())
        var record = StallRecord(
            id: ReportIdentifier.make(at: startedAt), kind: .stall,
            loop: StallRecord.Loop(label: loop, kind: .runLoop, turn: 1, nesting: 0, thread: .init(id: 1, name: "app")),
            threshold: 250_000_000, startedAt: startedAt, watchdogLate: 1_000_000, state: state,
            duration: milliseconds * 1_000_000
        )
        let image = LoadedImage(
            path: "/opt/app/bin/app", base: 0, addresses: 0..<0x10000, buildID: [0xab, 0x01], isExecutable: true)
        record.samples = [
            Sample(
                age: 250_000_000, isValid: true,
                stack: .success(.stub([0x1000 + UInt64(function)])),
                images: ImageList([image])
            )
        ]
        return record
    }

    func after(milliseconds: UInt64, state: StallRecord.State = .ended) -> StallRecord {
        var record = self
        record.duration = milliseconds * 1_000_000
        record.state = state
        return record
    }
}

extension StallReport.Cause {
    /// A cause of the given kind, without numbers.
    static func fixture(kind: StallReport.CauseKind, summary: String = "") -> Self {
        Self(
            kind: kind, summary: summary, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0,
            blockedMilliseconds: 0, uncertaintyMilliseconds: 0
        )
    }
}

extension TemporaryDirectory {
    func reports() throws -> [StallReport] {
        try names.filter(StallReport.isFileName).map { name in
            try StallReport(jsonData: #require(AtomicFile.read(path + "/" + name, limit: StallReport.maximumBytes)))
        }
    }
}

private struct StuckReporter: Error {}

/// Runs a reporter's threads while `body` submits, and returns when everything has been delivered; gives up a reporter
/// that does not end.
func withReporter(
    _ sinks: [ReportOutput], hooks: HookSink = .init(), settings: Reporter.Settings = .fixture(),
    _ body: (Reporter) throws -> Void
) throws -> MonitorStatistics {
    let called: [SinkFactory] = hooks.isEmpty ? [] : [{ _, _ in hooks.description }]
    let reporter = try Reporter(settings: settings, sinks: sinks.map { $0.factory() } + called)
    try reporter.startSinks()
    let thread = try WorkerThread(name: "test-reporter") { reporter.run() }
    let result = Result { try body(reporter) }
    reporter.close()
    guard thread.finish(until: endOfPatience) else { throw StuckReporter() }
    try result.get()
    return reporter.counts.current
}
