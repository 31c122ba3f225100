import Foundation
import Glibc
import LinuxSupport
package import StallWatch
import TextOutput

/// The counts of many results, and the overall judgement.
package struct ScenarioTally: Equatable, Sendable {
    /// The number of things that a machine may lack for scenarios: two libraries, a cgroup of version 1, nice workers of
    /// libdispatch, a disk, and a global that a process initializes only once.
    package static let unavailableLimit = 6
    /// The share of runs that may be inconclusive.
    ///
    /// One run always may.
    package static let inconclusiveShare = 0.02

    private(set) var counts: [ScenarioResult: Int] = [:]
    /// The number of runs that did not stand (``RetryPolicy``).
    private(set) var retries = 0
    private var judged: Set<String> = []
    /// What each unavailable scenario lacks.
    private var unavailable: [String: String] = [:]

    /// Counts one more result, and what an unavailable scenario lacks.
    package mutating func add(
        _ result: ScenarioResult, of scenario: String, lacking missing: String? = nil, retries: Int = 0
    ) {
        counts[result, default: 0] += 1
        self.retries += retries
        switch result {
        case .notAvailable: unavailable[scenario] = missing ?? scenario
        case .inconclusive: break
        default: judged.insert(scenario)
        }
    }

    /// Counts one more outcome.
    package mutating func add(_ outcome: Outcome) {
        add(outcome.result, of: outcome.scenario, lacking: outcome.unavailable, retries: outcome.retries)
    }

    package subscript(result: ScenarioResult) -> Int { counts[result] ?? 0 }

    package var total: Int { counts.values.reduce(0, +) }

    package var failed: Int { counts.reduce(0) { $0 + ($1.key.isFailure ? $1.value : 0) } }

    /// Everything that makes the whole run fail, except the failed scenarios themselves.
    package var unjudgedProblems: [String] {
        var problems: [String] = []
        if judged.isEmpty { problems.append("no scenario was judged") }
        // A scenario that was judged once is available, whatever a repetition in the same process found.
        let never = Set(unavailable.filter { !judged.contains($0.key) }.values).sorted()
        if never.count > Self.unavailableLimit {
            problems.append(
                "scenarios are not available for \(never.count) reasons, where \(Self.unavailableLimit) may be: "
                    + never.joined(separator: ", "))
        }
        let allowed = max(1, Int(Double(total) * Self.inconclusiveShare))
        if self[.inconclusive] > allowed {
            problems.append("\(self[.inconclusive]) runs were inconclusive, where \(allowed) may be")
        }
        return problems
    }

    /// Everything that makes the whole run fail.
    package var problems: [String] { (failed > 0 ? ["\(failed) failed"] : []) + unjudgedProblems }

    /// The counts in a line, without a line feed.
    package var line: String {
        "\(self[.ok]) of \(total) ok, \(failed) failed, \(self[.notAvailable]) not available, "
            + "\(self[.inconclusive]) inconclusive; \(retries) run again because the CPUs were taken away"
    }
}

extension ScenarioTally: Encodable {
    private enum Key: String, CodingKey {
        case problems, results, retries
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(problems, forKey: .problems)
        try container.encode(counts.byName, forKey: .results)
        try container.encode(retries, forKey: .retries)
    }
}

extension [ScenarioResult: Int] {
    /// The counts under the names that a summary file uses.
    package var byName: [String: Int] { reduce(into: [String: Int]()) { $0[$1.key.rawValue] = $1.value } }
}

/// How many reports blame the right function, and how many the right line.
package struct BlameCounts: Equatable, Sendable {
    /// The number of judged scenarios that name a culprit.
    private(set) var total = 0
    /// The number of those whose report blames the function.
    private(set) var functions = 0
    /// The number of those whose report blames a line in that function.
    private(set) var lines = 0

    package init(_ outcomes: [Outcome]) {
        for outcome in outcomes where outcome.result != .notAvailable && outcome.result != .inconclusive {
            guard let function = outcome.expected?.function else { continue }
            total += 1
            guard let own = outcome.own, own.function == function else { continue }
            functions += 1
            if let file = own.sourceFile, let line = own.line, SourceFunction.contains(line, of: function, in: file) {
                lines += 1
            }
        }
    }

    /// The counts in a line, without a line feed.
    package var line: String { "\(functions) of \(total) functions, \(lines) of \(total) lines" }
}

/// An outcome as the summary file keeps it: with the names of its reports, so that they can be judged again.
package struct RecordedOutcome: Codable, Equatable {
    package var scenario: String
    package var thresholdMilliseconds: Double
    /// The duration of each injected stall, in milliseconds.
    package var injected: [Double]
    /// The files of all reports, as the run named them.
    package var reports: [String]
    package var notCounted: SuppressionReason?
    package var suppressedStalls: Int
    package var runnableMilliseconds: Double
    package var waitedMilliseconds: Double
    package var peer: Int32?
    package var unavailable: String?
    package var hasFailed: Bool?
    package var retries: Int

    package init(_ outcome: Outcome) {
        scenario = outcome.scenario
        thresholdMilliseconds = outcome.thresholdMilliseconds
        injected = outcome.injected
        reports = outcome.reports.map(\.file)
        notCounted = outcome.notCounted
        suppressedStalls = outcome.suppressedStalls
        runnableMilliseconds = outcome.runnableMilliseconds
        waitedMilliseconds = outcome.waitedMilliseconds
        peer = outcome.peer
        unavailable = outcome.unavailable
        hasFailed = outcome.hasFailed ? true : nil
        retries = outcome.retries
    }

    /// Reads the outcomes from a summary file.
    package static func read(_ path: String) throws(ScenariosFailure) -> [RecordedOutcome] {
        struct Entry: Decodable {
            package let run: RecordedOutcome
        }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ScenariosFailure(.inputOutput, "\(path) cannot be read: name a file that --summary has written")
        }
        do {
            return try JSONDecoder().decode([Entry].self, from: data).map(\.run)
        } catch {
            throw ScenariosFailure(.inputOutput, "\(path) is not a summary of a run of the scenarios: \(error)")
        }
    }

    /// Returns the outcome of one of `scenarios`, with the reports as they are in `directory` now.
    ///
    /// - Throws: `ScenariosFailure` if the scenario is not known, or if a report is missing or damaged.
    package func outcome(of scenarios: [Scenario], reportsIn directory: String) throws(ScenariosFailure) -> Outcome {
        guard let scenario = scenarios.first(where: { $0.name == scenario }) else {
            throw ScenariosFailure(
                .inputOutput, "the summary has a scenario that this program does not have: \(scenario)")
        }
        let read = try reports.map { file throws(ScenariosFailure) in
            try ReportedStall.read(fileName(file), in: directory)
        }
        return Outcome(
            scenario: scenario.name, expected: scenario.expected, thresholdMilliseconds: thresholdMilliseconds,
            injected: injected, reports: read, toleratedCause: scenario.toleratedCause, notCounted: notCounted,
            suppressedStalls: suppressedStalls, runnableMilliseconds: runnableMilliseconds,
            waitedMilliseconds: waitedMilliseconds, peer: peer, unavailable: unavailable, hasFailed: hasFailed ?? false,
            retries: retries
        )
    }
}

/// The entry of one scenario in the summary file.
///
/// It always has every key. A missing value is null.
package struct Summary: Encodable {
    package let outcome: Outcome

    /// Returns an array with an object per scenario, in UTF-8, with a line feed at the end.
    package static func json(_ outcomes: [Outcome]) throws(ScenariosFailure) -> [UInt8] {
        try json(outcomes.map(Summary.init))
    }

    /// Returns `value` as the summary file has it: in UTF-8, with a line feed at the end.
    package static func json(_ value: some Encodable) throws(ScenariosFailure) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return [UInt8](try encoder.encode(value)) + [UInt8(ascii: "\n")]
        } catch {
            throw ScenariosFailure(.inputOutput, "the summary cannot be encoded: \(error)")
        }
    }

    private enum Key: String, CodingKey {
        case scenario, injectedMilliseconds, expectsReport, expectedFunction
        case report, reportedMilliseconds, blamedFunction, result, retries, expectedCause, cause, expectedOwner, owner,
            run
    }

    package func encode(to encoder: any Encoder) throws {
        let own = outcome.own
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(outcome.scenario, forKey: .scenario)
        // `encodeIfPresent` would leave the key out.
        try container.encode(outcome.injectedMilliseconds.map(Self.rounded), forKey: .injectedMilliseconds)
        try container.encode(outcome.expected != nil, forKey: .expectsReport)
        try container.encode(outcome.expected?.function, forKey: .expectedFunction)
        try container.encode(own?.file, forKey: .report)
        try container.encode(own?.milliseconds, forKey: .reportedMilliseconds)
        try container.encode(own?.function, forKey: .blamedFunction)
        try container.encode(outcome.expected?.cause, forKey: .expectedCause)
        try container.encode(own?.cause, forKey: .cause)
        try container.encode(outcome.expected?.owner, forKey: .expectedOwner)
        try container.encode(own?.owner, forKey: .owner)
        try container.encode(outcome.result, forKey: .result)
        try container.encode(outcome.retries, forKey: .retries)
        // All that is needed to judge the reports again.
        try container.encode(RecordedOutcome(outcome), forKey: .run)
    }

    /// Rounds to the microsecond, as reports do.
    private static func rounded(_ milliseconds: Double) -> Double {
        (milliseconds * 1000).rounded() / 1000
    }
}

/// A JSON file with the results, for programs.
///
/// It appears as a whole or not at all.
package struct SummaryFile {
    /// The file itself: a symbolic link stays, and its target is replaced.
    private let path: String

    /// Checks that the file can be made, and leaves an existing file unchanged.
    ///
    /// - Parameter path: Not empty.
    /// - Throws: `ScenariosFailure` if the file cannot be made.
    package init(path: String) throws(ScenariosFailure) {
        self.path = Self.resolved(path)
        let type = try? FileManager.default.attributesOfItem(atPath: self.path)[.type] as? FileAttributeType
        guard type == nil || type == .typeRegular else {
            throw ScenariosFailure(.cannotCreate, "\(path) is not a regular file: name another one for the summary")
        }
        let probe = "\(self.path).\(getpid()).tmp"
        try Self.attempt { () throws(SystemError) in try AtomicFile.write([], to: probe) }
        unlink(probe)
    }

    /// Writes or replaces the file.
    package func write(_ value: some Encodable) throws(ScenariosFailure) {
        let json = try Summary.json(value)
        try Self.attempt { () throws(SystemError) in try AtomicFile.replace(path, with: json) }
    }

    /// Writes or replaces the file.
    package func write(_ outcomes: [Outcome]) throws(ScenariosFailure) { try write(outcomes.map(Summary.init)) }

    private static func attempt(_ body: () throws(SystemError) -> Void) throws(ScenariosFailure) {
        do throws(SystemError) {
            try body()
        } catch {
            throw ScenariosFailure("the summary \(error.message)", errno: error.errno ?? EIO)
        }
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}

/// The results as a table.
package struct SummaryTable {
    /// The table, with the counts below it.
    package let text: String
    package let tally: ScenarioTally

    package init(_ outcomes: [Outcome]) {
        var table = TextTable([
            .init("scenario"), .init("injected ms", .right), .init("reported ms", .right), .init("blamed function"),
            .init("cause"), .init("result"), .init("file"),
        ])
        var tally = ScenarioTally()
        for outcome in outcomes {
            table.add(Self.cells(outcome))
            tally.add(outcome)
        }
        self.tally = tally
        text = "\n" + table.text(for: Terminal()) + "\n\(tally.line)\nblamed: \(BlameCounts(outcomes).line)\n"
    }

    private static func cells(_ outcome: Outcome) -> [String] {
        let own = outcome.own
        return [
            outcome.scenario, outcome.injectedMilliseconds?.oneDecimal ?? "-", own?.milliseconds.oneDecimal ?? "-",
            own.map { $0.function ?? "?" } ?? "-", own.map { $0.cause ?? "?" } ?? "-", outcome.result.rawValue,
            own?.file ?? "-",
        ]
    }
}

extension Double {
    /// The number with one decimal.
    package var oneDecimal: String {
        let tenths = Int(exactly: (self * 10).rounded()) ?? .max
        return (tenths < 0 ? "-" : "") + "\(tenths.magnitude / 10).\(tenths.magnitude % 10)"
    }
}
