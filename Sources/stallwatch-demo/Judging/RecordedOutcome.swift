import Foundation
import StallWatch

/// An outcome as the summary file keeps it: with the names of its reports, so that they can be judged again.
struct RecordedOutcome: Codable, Equatable {
    var scenario: String
    var thresholdMilliseconds: Double
    /// The duration of each injected stall, in milliseconds.
    var injected: [Double]
    /// The files of all reports, as the run named them.
    var reports: [String]
    var notCounted: SuppressionReason?
    var suppressedStalls: Int
    var runnableMilliseconds: Double
    var waitedMilliseconds: Double
    var unavailable: String?
    var retries: Int

    init(_ outcome: Outcome) {
        scenario = outcome.scenario
        thresholdMilliseconds = outcome.thresholdMilliseconds
        injected = outcome.injected
        reports = outcome.reports.map(\.file)
        notCounted = outcome.notCounted
        suppressedStalls = outcome.suppressedStalls
        runnableMilliseconds = outcome.runnableMilliseconds
        waitedMilliseconds = outcome.waitedMilliseconds
        unavailable = outcome.unavailable
        retries = outcome.retries
    }

    /// Reads the outcomes from a summary file.
    static func read(_ path: String) throws(DemoFailure) -> [RecordedOutcome] {
        struct Entry: Decodable {
            let run: RecordedOutcome
        }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw DemoFailure(.inputOutput, "\(path) cannot be read: name a file that --summary has written")
        }
        do {
            return try JSONDecoder().decode([Entry].self, from: data).map(\.run)
        } catch {
            throw DemoFailure(.inputOutput, "\(path) is not a summary of a run of the scenarios: \(error)")
        }
    }

    /// Returns the outcome with the reports as they are in `directory` now.
    ///
    /// - Throws: `DemoFailure` if the scenario is not known, or if a report is missing or damaged.
    func outcome(reportsIn directory: String) throws(DemoFailure) -> Outcome {
        guard let scenario = Scenario.all.first(where: { $0.name == scenario }) else {
            throw DemoFailure(.inputOutput, "the summary has a scenario that this demo does not have: \(scenario)")
        }
        var read: [ReportedStall] = []
        for file in reports {
            let name = file.split(separator: "/").last.map(String.init) ?? file
            read.append(try ReportedStall.read(name, in: directory))
        }
        return Outcome(
            scenario: scenario.name, expected: scenario.expected, thresholdMilliseconds: thresholdMilliseconds,
            injected: injected, reports: read, toleratedCause: scenario.toleratedCause, notCounted: notCounted,
            suppressedStalls: suppressedStalls, runnableMilliseconds: runnableMilliseconds,
            waitedMilliseconds: waitedMilliseconds, unavailable: unavailable, retries: retries
        )
    }
}
