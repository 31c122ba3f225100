import Foundation
import LinuxSupport
import StallWatch
import Synchronization

/// Runs scenarios beside the main run loop, one at a time, and judges the reports of each.
struct ScenarioRunner: Sendable {
    let monitor: StallMonitor
    private let mainLoop: LoopWatch
    let directory: String
    let loadTime: Duration
    private let inbox = ReportInbox()

    /// How long after a stall's end its report may arrive; a report takes some 10 ms, and much longer on a busy disk.
    static let timeout = Duration.seconds(30)
    /// How long the loop stays idle after each scenario, for an unexpected report to arrive and for the loop to wait.
    static let settling = Duration.milliseconds(300)

    /// A runner for all reports that `monitor` makes from now on.
    init(monitor: StallMonitor, mainLoop: LoopWatch, directory: String, loadTime: Duration) async {
        self.monitor = monitor
        self.mainLoop = mainLoop
        self.directory = directory
        self.loadTime = loadTime
        await inbox.open(monitor.makeReports())
    }

    /// Stops the monitor; returns the reports that came too late to belong to a scenario: each is a false alarm.
    func finish() async throws(ScenariosFailure) -> [ReportedStall] {
        monitor.stop()
        return try await read(inbox.rest().map(\.fileName))
    }

    /// Runs a scenario until its result stands (``RetryPolicy``), and calls `onRetry` with each outcome that does not.
    func judge(
        _ scenario: Scenario, onRetry: (Outcome) throws(ScenariosFailure) -> Void
    ) async throws(ScenariosFailure) -> Outcome {
        try await RetryPolicy().settle(
            { () async throws(ScenariosFailure) in try await run(scenario) }, onRetry: onRetry)
    }

    /// Runs each scenario once, in order, with a line for each, and stops the monitor.
    func judgeAll(_ scenarios: [Scenario], _ progress: Progress) async throws(ScenariosFailure) -> [Outcome] {
        var outcomes: [Outcome] = []
        for (index, scenario) in scenarios.enumerated() {
            let outcome = try await judge(scenario) { outcome throws(ScenariosFailure) in
                try progress.repeats(outcome, index)
            }
            try progress.finish(outcome, index)
            outcomes.append(outcome)
        }
        let late = try await finish()
        if !outcomes.isEmpty { outcomes[outcomes.count - 1].reports += late }
        return outcomes
    }

    /// Waits until the main loop's stalls are reported, and forgets the reports of those that began after `begin`.
    func forgetStalls(since begin: Timestamp) async {
        _ = monitor.settle(["main"], until: monotonicNow() &+ UInt64(Self.timeout.milliseconds * 1_000_000))
        // The reports are in the stream, from which another task takes them.
        await pause(Self.settling)
        await inbox.forgetReports(since: begin)
    }

    private func run(_ scenario: Scenario) async throws(ScenariosFailure) -> Outcome {
        let context = ScenarioContext(
            threshold: monitor.configuration.threshold,
            stall: monitor.configuration.threshold * scenario.stallFactor, loadTime: loadTime,
            monitor: monitor, mainLoop: mainLoop, directory: directory, inbox: inbox
        )
        var outcome = Outcome(
            scenario: scenario.name, expected: scenario.expected,
            thresholdMilliseconds: context.threshold.milliseconds, injected: [], reports: [],
            toleratedCause: scenario.toleratedCause
        )
        let suppressed = scenario.suppressed.map { context.suppressed([$0]) }
        let stoppedBefore = context.suppressed(SuppressionReason.withoutCPU)
        let runnableBefore = MainThread.runnableMilliseconds()
        do {
            outcome.injected = try await scenario.run(context).map(\.milliseconds)
        } catch let missing as NotAvailable {
            outcome.unavailable = missing.reason
        } catch let failure as NoResult {
            StandardError.write("\(scenario.name): \(failure.sentence)\n")
            outcome.hasFailed = true
        } catch {
            throw ScenariosFailure(error, of: "the scenario \(scenario.name)")
        }
        let expected = scenario.expected.map { $0.count + ($0.besides == nil ? 0 : 1) } ?? 0
        let awaited = outcome.unavailable == nil && !outcome.hasFailed ? expected : 0
        let reports = await inbox.reports(
            atLeast: awaited - context.hostFiles.count, within: Self.timeout, settling: Self.settling
        )
        context.close()
        for monitor in context.monitors { try checkWrites(of: monitor) }
        outcome.peer = context.expectedPeer
        (outcome.timerDelay, outcome.timerWait) = (context.timerDelay, context.timerWait)
        outcome.reports = try read(reports.map(\.fileName) + context.hostFiles)
        outcome.runnableMilliseconds = MainThread.runnableMilliseconds() - runnableBefore
        if let expected = scenario.expected, expected.loop == "main", !expected.isShortOfCPU {
            outcome.waitedMilliseconds = outcome.runnableMilliseconds
        }
        outcome.suppressedStalls = context.suppressed(SuppressionReason.withoutCPU) - stoppedBefore
        if let reason = scenario.suppressed, context.suppressed([reason]) == suppressed { outcome.notCounted = reason }
        return outcome
    }

    private func checkWrites(of monitor: StallMonitor) throws(ScenariosFailure) {
        let statistics = monitor.statistics
        if statistics.failedWrites > 0, let error = statistics.lastWriteError {
            throw ScenariosFailure(.inputOutput, error)
        }
    }

    /// Reads the reports back from their files, because users see the files.
    private func read(_ names: [String]) throws(ScenariosFailure) -> [ReportedStall] {
        try checkWrites(of: monitor)
        return try names.map { name throws(ScenariosFailure) in try ReportedStall.read(name, in: directory) }
    }
}

extension SuppressionReason {
    /// The reasons for which a stall is suppressed because the whole process could not run.
    fileprivate static let withoutCPU: [Self] = [.processStopped, .cpuStolen, .suspended]
}

/// The order of a round that runs two scenarios at a time; at most one of the two computes for long, because the other
/// one and the watchdogs need the second CPU.
final class ScenarioLanes: Sendable {
    enum Lane: Sendable {
        case computing, blocking
    }

    /// Scenarios that compete for CPUs or for the disk; they run one after another, when all others are over.
    static let alone: Set<String> = [
        "starved", "throttled", "under-load", "fsync", "paging", "cpu-kernel-copy",
        "priority-inversion", "priority-inversion-queue", "background-owner", "file-read", "file-write", "cured-fsync",
        "cured-fileRead", "cured-fileWrite", "cured-paging", "cured-contention", "cured-quota",
    ]

    /// Whether a scenario runs alone: one that looks at the pool finds what the tasks of others do there.
    static func isAlone(_ scenario: Scenario) -> Bool {
        alone.contains(scenario.name) || Scenario.poolScenarios.contains { $0.name == scenario.name }
    }

    private struct Rest {
        var computing: ArraySlice<Scenario>
        var blocking: ArraySlice<Scenario>
    }

    private let rest: Mutex<Rest>

    /// The lanes for all of `scenarios` that are not in ``alone``.
    init(_ scenarios: [Scenario]) {
        let shared = scenarios.filter { !Self.isAlone($0) }
        rest = Mutex(Rest(computing: shared.filter(\.computes)[...], blocking: shared.filter { !$0.computes }[...]))
    }

    /// Removes and returns the next scenario of a lane; an empty computing lane helps with the blocking scenarios.
    func next(_ lane: Lane) -> Scenario? {
        rest.withLock { rest in
            if lane == .computing, let scenario = rest.computing.popFirst() { return scenario }
            return lane == .computing ? rest.blocking.popLast() : rest.blocking.popFirst()
        }
    }
}

extension Scenario {
    /// Whether the scenario keeps a CPU busy: it computes, the owner of its lock does, or it makes many turns.
    var computes: Bool {
        guard let expected else { return true }
        return expected.cause == "cpu" || expected.ownerDoes == "running" || expected.differingSamples
    }
}
