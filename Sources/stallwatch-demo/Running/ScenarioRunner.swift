import Foundation
import StallWatch

/// Runs scenarios beside the main run loop, one at a time, and judges what is reported of each.
struct ScenarioRunner: Sendable {
    let monitor: StallMonitor
    /// The monitor's report directory.
    let directory: String
    /// How long a scenario that goes on and on does so.
    let loadTime: Duration
    /// Whether a turn may be longer by what its thread waited for a CPU.
    let grantsWaits: Bool
    private let inbox = ReportInbox()

    /// How long after a stall's end its report may take to come.
    ///
    /// Making and writing one takes some 10 ms, but a busy disk may take much longer.
    static let timeout = Duration.seconds(5)
    /// How long the loop is left alone after each scenario.
    ///
    /// Time for a report that should not come to come, and for the loop to wait.
    static let settling = Duration.milliseconds(300)

    /// A runner for what `monitor` reports from now on.
    init(monitor: StallMonitor, directory: String, loadTime: Duration, grantsWaits: Bool) async {
        self.monitor = monitor
        self.directory = directory
        self.loadTime = loadTime
        self.grantsWaits = grantsWaits
        await inbox.open(monitor.reports)
    }

    /// How long the scenario's stall is to take.
    func stall(of scenario: Scenario) -> Duration { monitor.configuration.threshold * scenario.stallFactor }

    /// Stops the monitor.
    ///
    /// Returns what was reported so late that it belongs to no scenario for certain: it must not go unseen.
    ///
    /// - Throws: When a report could not be written or read.
    func finish() async throws(DemoFailure) -> [ReportedStall] {
        monitor.stop()
        return try await read(inbox.rest().map(\.fileName))
    }

    /// Runs one scenario.
    ///
    /// - Parameter scenario: The scenario.
    /// - Returns: What came of it.
    /// - Throws: When it cannot run, or a report could not be written or read.
    func run(_ scenario: Scenario) async throws(DemoFailure) -> Outcome {
        let context = ScenarioContext(
            threshold: monitor.configuration.threshold, stall: stall(of: scenario), loadTime: loadTime,
            monitor: monitor, directory: directory, inbox: inbox
        )
        var outcome = Outcome(
            scenario: scenario.name, expected: scenario.expected,
            thresholdMilliseconds: context.threshold.milliseconds, injected: [], reports: [],
            toleratedCause: scenario.toleratedCause
        )
        let suppressed = scenario.suppressed.map(context.suppressed)
        let readyBefore = MainThread.readyMilliseconds()
        do {
            outcome.injected = try await scenario.run(context).map(\.milliseconds)
        } catch let missing as NotAvailable {
            outcome.unavailable = missing.reason
        } catch let failure as DemoFailure {
            throw failure
        } catch let failure as StallWatchError {
            throw DemoFailure(failure)
        } catch {
            throw DemoFailure(.systemError, "the scenario \(scenario.name) cannot run: \(error)")
        }
        let awaited = outcome.unavailable == nil ? scenario.expected?.count ?? 0 : 0
        let reports = await inbox.reports(
            atLeast: awaited - context.hostFiles.count, within: Self.timeout, settling: Self.settling
        )
        context.close()
        for monitor in context.monitors { try checkWrites(of: monitor) }
        outcome.reports = try read(reports.map(\.fileName) + context.hostFiles)
        let waited = MainThread.readyMilliseconds() - readyBefore
        outcome.forgiveStarvation(of: waited)
        if grantsWaits, let expected = scenario.expected, expected.loop == "main", !expected.isShortOfCPU {
            outcome.waitedMilliseconds = waited
        }
        if let reason = scenario.suppressed, context.suppressed(reason) == suppressed { outcome.notCounted = reason }
        return outcome
    }

    private func checkWrites(of monitor: StallMonitor) throws(DemoFailure) {
        let statistics = monitor.statistics
        if statistics.failedWrites > 0, let error = statistics.lastWriteError {
            throw DemoFailure(.inputOutput, error.description)
        }
    }

    /// Reads the reports back from their files: what is judged is what a user finds on the disk.
    private func read(_ names: [String]) throws(DemoFailure) -> [ReportedStall] {
        try checkWrites(of: monitor)
        var read: [ReportedStall] = []
        for name in names {
            let file = directory + (directory.hasSuffix("/") ? "" : "/") + name
            guard let data = FileManager.default.contents(atPath: file) else {
                throw DemoFailure(
                    .inputOutput, "the report \(file) cannot be read: leave the files alone while the demo runs"
                )
            }
            do throws(StallWatchError) {
                read.append(ReportedStall(try StallReport(jsonData: [UInt8](data)), file: file))
            } catch {
                throw DemoFailure(.inputOutput, "the report \(file) is damaged: \(error)")
            }
        }
        return read
    }
}
