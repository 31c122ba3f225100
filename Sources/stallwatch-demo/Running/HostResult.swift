import ArgumentParser
import StallWatch

/// The child's result, which is one line of JSON on its standard output.
struct HostResult: Codable, Sendable {
    /// The duration of each injected stall.
    var injectedMilliseconds: [Double]
    /// The names of the report files.
    var files: [String]
    var suppressed: SuppressionCounts
}
