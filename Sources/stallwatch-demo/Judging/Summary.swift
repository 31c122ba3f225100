import Foundation

/// The entry of one scenario in the summary file.
///
/// It always has every key. A missing value is null.
struct Summary: Encodable {
    let outcome: Outcome

    /// Returns an array with an object per scenario, in UTF-8, with a line feed at the end.
    static func json(_ outcomes: [Outcome]) throws(DemoFailure) -> [UInt8] {
        try json(outcomes.map(Summary.init))
    }

    /// Returns `value` as the summary file has it: in UTF-8, with a line feed at the end.
    static func json(_ value: some Encodable) throws(DemoFailure) -> [UInt8] {
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

    func encode(to encoder: any Encoder) throws {
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
