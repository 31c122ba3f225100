package import StallWatch
import TextOutput

/// Something that happens to a loop, and the report that it must give.
package struct Scenario: Sendable {
    /// Runs the scenario, and returns once the loop has no work left.
    ///
    /// The result is the measured duration of each injected stall.
    package typealias Run = @Sendable (ScenarioContext) async throws -> [Duration]

    /// The value of `--scenario`.
    package let name: String
    /// The event, in half a sentence.
    package let summary: String
    /// The duration of the injected stall, as a multiple of the threshold.
    package let stallFactor: Double
    /// The report's required contents; `nil` if there must be no report.
    package let expected: ExpectedReport?
    /// The reason for which the monitor must suppress a stall; `nil` if that does not matter.
    package var suppressed: SuppressionReason?
    /// The kind of cause that unexpected reports may have.
    package var toleratedCause: String?
    package let run: Run

    /// A scenario that must give a report.
    ///
    /// `run` returns the duration of the only stall.
    package static func stalling(
        _ name: String, _ summary: String, times stallFactor: Double, _ expected: ExpectedReport,
        run: @escaping @Sendable (ScenarioContext) async throws -> Duration
    ) -> Scenario {
        Scenario(
            name: name, summary: summary, stallFactor: stallFactor, expected: expected, run: { [try await run($0)] }
        )
    }

    /// A scenario that must give several reports.
    package static func stallingOften(
        _ name: String, _ summary: String, times stallFactor: Double, _ expected: ExpectedReport, run: @escaping Run
    ) -> Scenario {
        Scenario(name: name, summary: summary, stallFactor: stallFactor, expected: expected, run: run)
    }

    /// A scenario that must give no report.
    ///
    /// Reports of `toleratedCause` are allowed, because other threads do delay the loop.
    package static func quiet(
        _ name: String, _ summary: String, suppressed: SuppressionReason? = nil,
        tolerating toleratedCause: String? = nil, run: @escaping @Sendable (ScenarioContext) async throws -> Void
    ) -> Scenario {
        Scenario(
            name: name, summary: summary, stallFactor: 0, expected: nil, suppressed: suppressed,
            toleratedCause: toleratedCause,
            run: { context in
                try await run(context)
                return []
            })
    }

    /// A scenario that must give no report unless a turn becomes a stall; `run` returns the duration of the longest one.
    package static func short(
        _ name: String, _ summary: String, times stallFactor: Double,
        run: @escaping @Sendable (ScenarioContext) async throws -> Duration
    ) -> Scenario {
        Scenario(
            name: name, summary: summary, stallFactor: stallFactor, expected: nil, run: { [try await run($0)] })
    }
}

extension Scenario {
    /// Returns a line per scenario.
    package static func list(_ scenarios: [Scenario]) -> String {
        let width = scenarios.map(\.name.count).max() ?? 0
        return scenarios.map { scenario in
            var expectation = scenario.expected == nil ? "no report" : "reported"
            if let function = scenario.expected?.function { expectation += " in " + function }
            return scenario.name.padded(to: width) + "  \(scenario.summary) (\(expectation))\n"
        }.joined()
    }
}

/// The scenario cannot run on this machine.
package struct NotAvailable: Error {
    /// The missing thing, in half a sentence.
    package let reason: String

    package init(reason: String) { self.reason = reason }
}

/// A random number generator that repeats its numbers for the same seed (Steele, Lea and Flood 2014).
package struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
