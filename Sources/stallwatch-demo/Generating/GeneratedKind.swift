import StallReports
import Glibc

/// A kind of made-up stalls: one path through a program, with its cause and how long such stalls last.
struct GeneratedKind {
    /// How frequent the kind is beside others.
    let weight: Double
    /// Whether it is found on the last day only.
    let isNew: Bool
    /// The culprit's line in the first version.
    let line: Int
    let template: ReportTemplate
    /// The mean of what stalls last over the threshold, in milliseconds, in the first version.
    private let mean: Double
    /// How many times longer stalls are in the second version.
    private let slowdown: Double

    private static let threshold = 250.0

    init(number: Int, using random: inout SplitMix64) {
        // Zipf's law: a few kinds have most of the stalls.
        weight = 1 / Double(number + 1)
        isNew = number > 0 && number % 17 == 16
        mean = .random(in: 40...900, using: &random)
        slowdown = number % 11 == 5 ? 2.5 : 1
        line = .random(in: 20...900, using: &random)
        let stack = GeneratedStack(number: number, using: &random)
        template = ReportTemplate(stack.report(using: &random), shares: stack.shares)
    }

    /// The duration of a stall: exponential above the threshold.
    func milliseconds(version: Int, using random: inout SplitMix64) -> Double {
        let place = Double.random(in: 0..<1, using: &random)
        let duration = Self.threshold - log(1 - place) * mean * (version == 0 ? 1 : slowdown)
        return (duration * 1_000).rounded() / 1_000
    }
}
