import Benchmark
import Measuring

/// The repeatable costs of StallWatch and of the alternatives, measured in one process.
let benchmarks: @Sendable () -> Void = {
    ProbeCost.comparison.register()
    TurnCost.comparison.register()
    CaptureCost.comparison.register()
    for kibibytes in [4, 16, 256] { CaptureCost.comparison(kibibytes: kibibytes).register() }
    OperationCost.comparison.register()
    ExceptionCost.comparison.register()
    EncodingCost.comparison.register()
}

/// A benchmark of several ways to do the same thing.
///
/// The ways take turns, so a slow moment of the machine affects all of them. Every way has its own metric in nanoseconds.
/// Each iteration also records its ratio to the reference way, in thousandths because metrics are whole numbers.
struct Comparison {
    /// A way, and a function that measures it: one list of values for each of the comparison's quantities.
    struct Way {
        let name: String
        let measure: () throws -> [[Double]]

        init(_ name: String, _ measure: @escaping () throws -> [[Double]]) {
            self.name = name
            self.measure = measure
        }

        /// A way with one number per measurement.
        init(_ name: String, _ measure: @escaping () throws -> Double) {
            self.init(name) { [[try measure()]] }
        }
    }

    let title: String
    /// The measured quantities of each way; ratios use the first.
    var quantities = ["ns"]
    let iterations: Int
    let ways: [Way]
    /// The way that the others are compared with.
    let reference: String
    /// Further ratios, computed from one iteration's medians by the way's name.
    var further: [(name: String, ratio: ([String: Double]) -> Double)] = []

    func register() {
        let costs = ways.flatMap { way in quantities.map { metric("\(way.name): \($0)") } }
        let ratios = ways.filter { $0.name != reference }.map { metric("\($0.name) / \(reference), ‰") }
        let all = costs + ratios + further.map { metric("\($0.name), ‰") }
        Benchmark(
            title,
            configuration: .init(
                metrics: all, units: Dictionary(uniqueKeysWithValues: all.map { ($0, .count) }), warmupIterations: 1,
                maxDuration: .seconds(600), maxIterations: iterations
            )
        ) { benchmark in
            var medians: [String: Double] = [:]
            for way in ways {
                for (quantity, values) in zip(quantities, try way.measure()) where !values.isEmpty {
                    for value in values { benchmark.measurement(metric("\(way.name): \(quantity)"), whole(value)) }
                    if quantity == quantities[0] { medians[way.name] = Samples(values).median }
                }
            }
            guard let base = medians[reference], base > 0 else { return }
            for (way, median) in medians where way != reference {
                benchmark.measurement(metric("\(way) / \(reference), ‰"), whole(median / base * 1000))
            }
            for (name, ratio) in further { benchmark.measurement(metric("\(name), ‰"), whole(ratio(medians) * 1000)) }
        }
    }

    private func metric(_ name: String) -> BenchmarkMetric { .custom(name, useScalingFactor: false) }

    /// Rounds a value, and replaces negative ones (noise above the measured value) by 0, where the histograms begin.
    private func whole(_ value: Double) -> Int { value.isFinite ? max(Int(value.rounded()), 0) : 0 }
}
