import Measuring

/// Measures what needs time to pass or other processes, beside the alternatives, and prints tables.
///
/// Nothing else should run on the machine meanwhile. With arguments, only the measurements of these names are made.
@main
struct StallWatchBench {
    static let measurements: [(name: String, measure: @Sendable () throws -> Table)] = [
        ("latency", SampleLatency.table),
        ("file", FileLatency.table),
        ("debuggers", DebuggerCost.table),
        ("idle", IdleCost.table),
        ("busy", BusyCost.table),
        ("heartbeat", HeartbeatCost.table),
        ("resident", MemoryCost.table),
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
