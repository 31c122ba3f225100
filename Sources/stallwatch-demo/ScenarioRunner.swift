import Foundation
import StallWatch

/// Runs scenarios one after another, beside the main run loop, and collects what is reported of each.
struct ScenarioRunner: Sendable {
    let scenarios: [Scenario]
    let monitor: StallMonitor
    /// The monitor's report directory.
    let directory: String
    let progress: Progress
    /// How long a scenario that goes on and on does so.
    let loadTime: Duration

    /// How long after a stall's end its report may take to come.
    ///
    /// Making and writing one takes some 10 ms, but a busy disk may take much longer.
    static let patience = Duration.seconds(5)
    /// How long the loop is left alone after each scenario.
    ///
    /// Time for a report that should not come to come, and for the loop to wait.
    static let settling = Duration.milliseconds(300)

    /// Runs them all and stops the monitor.
    ///
    /// - Throws: When a report could not be written or read.
    func run() async throws(DemoFailure) -> [Outcome] {
        do throws(DemoFailure) {
            return try await runAll()
        } catch {
            // If this fails, too, the failure that comes first is the one to tell of.
            try? progress.abandon()
            throw error
        }
    }

    private func runAll() async throws(DemoFailure) -> [Outcome] {
        let inbox = ReportInbox()
        await inbox.open(monitor.reports)
        var outcomes: [Outcome] = []
        for (index, scenario) in scenarios.enumerated() {
            let threshold = monitor.configuration.threshold
            let stage = Stage(
                threshold: threshold, stall: threshold * scenario.stallFactor, loadTime: loadTime, monitor: monitor,
                directory: directory, inbox: inbox
            )
            try progress.begin(scenario, index, stall: stage.stall)
            let outcome = try await run(scenario, on: stage, inbox)
            try progress.finish(outcome, index)
            outcomes.append(outcome)
        }
        monitor.stop()
        // A report that comes this late belongs to no scenario for certain, but it must not go unseen.
        let late = try read(await inbox.rest().map(\.fileName))
        if !outcomes.isEmpty { outcomes[outcomes.count - 1].reports += late }
        return outcomes
    }

    private func run(_ scenario: Scenario, on stage: Stage, _ inbox: ReportInbox) async throws(DemoFailure) -> Outcome {
        var outcome = Outcome(
            scenario: scenario.name, expected: scenario.expected,
            thresholdMilliseconds: stage.threshold.milliseconds, injected: [], reports: [],
            toleratedCause: scenario.toleratedCause
        )
        let heldBack = scenario.heldBack.map(stage.heldBack)
        let readyBefore = MainThread.readyMilliseconds()
        do {
            outcome.injected = try await scenario.run(stage).map(\.milliseconds)
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
            atLeast: awaited - stage.hostFiles.count, within: Self.patience, settling: Self.settling
        )
        stage.close()
        for monitor in stage.monitors { try checkWrites(of: monitor) }
        outcome.reports = try read(reports.map(\.fileName) + stage.hostFiles)
        outcome.forgiveStarvation(of: MainThread.readyMilliseconds() - readyBefore)
        if let reason = scenario.heldBack, stage.heldBack(reason) == heldBack { outcome.notCounted = reason }
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
