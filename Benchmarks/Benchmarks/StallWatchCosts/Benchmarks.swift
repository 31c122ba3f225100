import Benchmark

/// The repeatable costs of StallWatch and of the alternatives, measured in one process.
let benchmarks: @Sendable () -> Void = {
    ProbeCost.comparison.register()
    TurnCost.comparison.register()
    CaptureCost.comparison.register()
    for kibibytes in [4, 16, 256] { CaptureCost.comparison(kibibytes: kibibytes).register() }
    ExceptionCost.comparison.register()
    EncodingCost.comparison.register()
}
