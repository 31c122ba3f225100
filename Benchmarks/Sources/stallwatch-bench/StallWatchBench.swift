/// Measures what StallWatch costs beside the alternatives, and prints tables of ratios.
///
/// Nothing else should run on the machine meanwhile. With arguments, only the measurements of these names are made.
@main
struct StallWatchBench {
    static let measurements: [(name: String, measure: @Sendable () throws -> Table)] = [
        ("capture", CaptureCost.table),
        ("depth", CaptureCost.tableByDepth),
        ("exceptions", ExceptionCost.table),
        ("turn", TurnCost.table),
        ("probe", ProbeCost.table),
        ("latency", SampleLatency.table),
        ("symbolication", SymbolicationCost.table),
        ("memory", SymbolicationCost.memoryTable),
    ]

    static func main() throws {
        let names = CommandLine.arguments.dropFirst()
        for (name, measure) in measurements where names.isEmpty || names.contains(name) {
            print(try measure().text)
        }
    }
}

/// What cannot be measured here, and why.
struct CannotMeasure: Error, CustomStringConvertible {
    let description: String
}
