import Foundation
import StallWatch

/// Runs scenarios one after another, beside the main run loop, and collects what is reported of each.
struct ScenarioRunner: Sendable {
    let scenarios: [Scenario]
    let monitor: StallMonitor
    /// The monitor's report directory.
    let directory: String
    let progress: Progress

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
            let stall = threshold * scenario.stallFactor
            try progress.begin(scenario, index, stall: stall)
            let injected = await scenario.run(stall)
            let reports = await inbox.reports(
                atLeast: scenario.expected == nil ? 0 : 1, within: Self.patience, settling: Self.settling
            )
            let outcome = Outcome(
                scenario: scenario.name, expected: scenario.expected, thresholdMilliseconds: threshold.milliseconds,
                injectedMilliseconds: injected?.milliseconds, reports: try read(reports)
            )
            try progress.finish(outcome, index)
            outcomes.append(outcome)
        }
        monitor.stop()
        // A report that comes this late belongs to no scenario for certain, but it must not go unseen.
        let late = try read(await inbox.rest())
        if !outcomes.isEmpty { outcomes[outcomes.count - 1].reports += late }
        return outcomes
    }

    /// Reads the reports back from their files: what is judged is what a user finds on the disk.
    private func read(_ reports: [StallReport]) throws(DemoFailure) -> [ReportedStall] {
        let statistics = monitor.statistics
        if statistics.failedWrites > 0, let error = statistics.lastWriteError {
            throw DemoFailure(.inputOutput, error.description)
        }
        var read: [ReportedStall] = []
        for report in reports {
            let file = directory + (directory.hasSuffix("/") ? "" : "/") + report.fileName
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
