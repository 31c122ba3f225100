import Foundation
import Glibc
import LinuxSupport
import StallWatch
import TextOutput

struct ScenarioTally: Equatable, Sendable {
    /// The number of things that a machine may lack for scenarios: two libraries, a cgroup of version 1, nice workers of
    /// libdispatch, a disk, and a global that a process initializes only once.
    static let unavailableLimit = 6
    /// The share of runs that may be inconclusive; one run always may.
    static let inconclusiveShare = 0.02

    private(set) var counts: [ScenarioResult: Int] = [:]
    /// The number of runs that did not stand (``RetryPolicy``).
    private(set) var retries = 0
    private var judged: Set<String> = []
    private var unavailable: [String: String] = [:]

    mutating func add(
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

    mutating func add(_ outcome: Outcome) {
        add(outcome.result, of: outcome.scenario, lacking: outcome.unavailable, retries: outcome.retries)
    }

    subscript(result: ScenarioResult) -> Int { counts[result] ?? 0 }

    var total: Int { counts.values.reduce(0, +) }

    var failed: Int { counts.reduce(0) { $0 + ($1.key.isFailure ? $1.value : 0) } }

    /// Everything that makes the whole run fail, except the failed scenarios themselves.
    var unjudgedProblems: [String] {
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

    var problems: [String] { (failed > 0 ? ["\(failed) failed"] : []) + unjudgedProblems }

    /// The counts in a line, without a line feed.
    var line: String {
        "\(self[.ok]) of \(total) ok, \(failed) failed, \(self[.notAvailable]) not available, "
            + "\(self[.inconclusive]) inconclusive; \(retries) run again because the CPUs were taken away"
    }
}

extension ScenarioTally: Encodable {
    private enum Key: String, CodingKey {
        case problems, results, retries
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(problems, forKey: .problems)
        let names = counts.map { ($0.key.rawValue, $0.value) }
        try container.encode(Dictionary(uniqueKeysWithValues: names), forKey: .results)
        try container.encode(retries, forKey: .retries)
    }
}

/// How many reports blame the right function, and how many the right line.
struct BlameCounts: Equatable, Sendable {
    private(set) var total = 0
    private(set) var functions = 0
    /// The number of those whose report blames a line in that function.
    private(set) var lines = 0

    init(_ outcomes: [Outcome]) {
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
    var line: String { "\(functions) of \(total) functions, \(lines) of \(total) lines" }
}

extension Outcome {
    /// Reads the outcomes of `scenarios` from a summary file, with the reports as they are in `directory` now.
    static func read(
        _ path: String, of scenarios: [Scenario], reportsIn directory: String
    ) throws(ScenariosFailure) -> [Outcome] {
        struct Entry: Decodable {
            let run: Outcome
        }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ScenariosFailure(.inputOutput, "\(path) cannot be read: name a file that --summary has written")
        }
        do {
            return try JSONDecoder().decode([Entry].self, from: data).map { entry in
                var outcome = entry.run
                guard let scenario = scenarios.first(where: { $0.name == outcome.scenario }) else {
                    throw ScenariosFailure(.inputOutput, "this program does not have the scenario \(outcome.scenario)")
                }
                (outcome.expected, outcome.toleratedCause) = (scenario.expected, scenario.toleratedCause)
                outcome.reports = try outcome.reports.map { try ReportedStall.read(fileName($0.file), in: directory) }
                return outcome
            }
        } catch let failure as ScenariosFailure {
            throw failure
        } catch {
            throw ScenariosFailure(.inputOutput, "\(path) is not a summary of a run of the scenarios: \(error)")
        }
    }
}

extension ReportedStall: Codable {
    init(from decoder: any Decoder) throws {
        self.init(file: try decoder.singleValueContainer().decode(String.self), loop: "", milliseconds: 0)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(file)
    }
}

/// The entry of one scenario in the summary file.
///
/// It always has every key. A missing value is null.
struct Summary: Encodable {
    let outcome: Outcome

    private enum Key: String, CodingKey {
        case scenario, expectsReport, expectedFunction, expected, report, blamedFunction, cause, result, retries, run
    }

    func encode(to encoder: any Encoder) throws {
        let own = outcome.own
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(outcome.scenario, forKey: .scenario)
        try container.encode(outcome.expected != nil, forKey: .expectsReport)
        // `encodeIfPresent` would leave the key out.
        try container.encode(outcome.expected?.function, forKey: .expectedFunction)
        try container.encode(outcome.expected, forKey: .expected)
        try container.encode(own?.file, forKey: .report)
        try container.encode(own?.function, forKey: .blamedFunction)
        try container.encode(own?.cause, forKey: .cause)
        try container.encode(outcome.result, forKey: .result)
        try container.encode(outcome.retries, forKey: .retries)
        // All that is needed to judge the reports again.
        try container.encode(outcome, forKey: .run)
    }
}

/// A JSON file with the results, for programs; it appears as a whole.
struct SummaryFile {
    private let path: String

    /// Makes an empty file, so that one that cannot be made is known before the run.
    init(path: String) throws(ScenariosFailure) {
        let type = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
        guard type == nil || type == .typeRegular else {
            throw ScenariosFailure(.cannotCreate, "\(path) is not a regular file: name another one for the summary")
        }
        self.path = path
        try write([UInt8]())
    }

    /// Writes the value as JSON, with a line feed at the end.
    func write(_ value: some Encodable) throws(ScenariosFailure) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            try AtomicFile.replace(path, with: [UInt8](try encoder.encode(value)) + [UInt8(ascii: "\n")])
        } catch let error as SystemError {
            throw ScenariosFailure("the summary \(error.message)", errno: error.errno ?? EIO)
        } catch {
            throw ScenariosFailure(.inputOutput, "the summary cannot be encoded: \(error)")
        }
    }
}

struct SummaryTable {
    let text: String
    let tally: ScenarioTally

    init(_ outcomes: [Outcome]) {
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
    var oneDecimal: String {
        let tenths = Int(exactly: (self * 10).rounded()) ?? .max
        return (tenths < 0 ? "-" : "") + "\(tenths.magnitude / 10).\(tenths.magnitude % 10)"
    }
}
