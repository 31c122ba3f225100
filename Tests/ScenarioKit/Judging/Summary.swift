import Foundation
import Glibc
import LinuxSupport
import TextOutput

/// The entry of one scenario in the summary file.
///
/// It always has every key. A missing value is null.
package struct Summary: Encodable {
    package let outcome: Outcome

    /// Returns an array with an object per scenario, in UTF-8, with a line feed at the end.
    package static func json(_ outcomes: [Outcome]) throws(DemoFailure) -> [UInt8] {
        try json(outcomes.map(Summary.init))
    }

    /// Returns `value` as the summary file has it: in UTF-8, with a line feed at the end.
    package static func json(_ value: some Encodable) throws(DemoFailure) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return [UInt8](try encoder.encode(value)) + [UInt8(ascii: "\n")]
        } catch {
            throw DemoFailure(.inputOutput, "the summary cannot be encoded: \(error)")
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
    /// - Throws: `DemoFailure` if the file cannot be made.
    package init(path: String) throws(DemoFailure) {
        self.path = Self.resolved(path)
        let type = try? FileManager.default.attributesOfItem(atPath: self.path)[.type] as? FileAttributeType
        guard type == nil || type == .typeRegular else {
            throw DemoFailure(.cannotCreate, "\(path) is not a regular file: name another one for the summary")
        }
        let probe = "\(self.path).\(getpid()).tmp"
        try Self.attempt { () throws(SystemError) in try AtomicFile.write([], to: probe) }
        unlink(probe)
    }

    /// Writes or replaces the file.
    package func write(_ value: some Encodable) throws(DemoFailure) {
        let json = try Summary.json(value)
        try Self.attempt { () throws(SystemError) in try AtomicFile.replace(path, with: json) }
    }

    /// Writes or replaces the file.
    package func write(_ outcomes: [Outcome]) throws(DemoFailure) { try write(outcomes.map(Summary.init)) }

    private static func attempt(_ body: () throws(SystemError) -> Void) throws(DemoFailure) {
        do throws(SystemError) {
            try body()
        } catch {
            throw DemoFailure("the summary \(error.message)", errno: error.errno ?? EIO)
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
        let tenths = Int((self * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }
}
