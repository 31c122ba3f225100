import Benchmark
import Measuring

/// One benchmark of several ways to do a thing, which take turns, so that a slow moment of the machine meets all of them.
///
/// Every way has a metric of its own, in nanoseconds, and each iteration gives its ratio to the way that is the reference, in
/// thousandths: metrics are whole numbers.
struct Comparison {
    /// A way to do it, and what it took each time: one list for each of the comparison's quantities.
    struct Way {
        let name: String
        let measure: () throws -> [[Double]]

        init(_ name: String, _ measure: @escaping () throws -> [[Double]]) {
            self.name = name
            self.measure = measure
        }

        /// A way whose time is told as one number.
        init(_ name: String, _ measure: @escaping () throws -> Double) {
            self.init(name) { [[try measure()]] }
        }
    }

    let title: String
    /// What is measured of each way; ratios are of the first.
    var quantities = ["ns"]
    let iterations: Int
    let ways: [Way]
    /// The way that the others are compared with.
    let reference: String
    /// Further ratios of one iteration's medians, which are told by way.
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

    /// Below zero where noise is larger than what is measured; the package's histograms begin at zero.
    private func whole(_ value: Double) -> Int { value.isFinite ? max(Int(value.rounded()), 0) : 0 }
}
