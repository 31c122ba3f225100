import Foundation
import Measuring

/// Runs the measurements that need idle time or other processes, and prints tables.
///
/// Nothing else should run on the machine at the same time. Arguments select measurements by name.
@main
struct StallWatchBench {
    static let measurements: [(name: String, measure: @Sendable () throws -> Table)] = [
        ("latency", SampleLatency.table),
        ("latency-busy", SampleLatency.busyTable),
        ("file", FileLatency.table),
        ("debuggers", DebuggerCost.table),
        ("idle", IdleCost.table),
        ("busy", BusyCost.table),
        ("rest", RestCost.table),
        ("heartbeat", HeartbeatCost.table),
        ("resident", MemoryCost.table),
        ("unwinders", UnwinderCost.table),
        ("exceptions", ThrowCost.table),
        ("symbolication", SymbolicationCost.table),
        ("memory", SymbolicationCost.memoryTable),
    ]

    static func main() {
        let names = CommandLine.arguments.dropFirst()
        if names.first == UnwinderCost.childArgument { return UnwinderCost.measureInThisProcess() }
        if names.first == ThrowCost.childArgument { return ThrowCost.measureInThisProcess() }
        for (name, measure) in measurements where names.isEmpty || names.contains(name) {
            do {
                print(try measure().text)
            } catch {
                let message = "stallwatch-bench: \(name) cannot be measured: \(error)\n"
                FileHandle.standardError.write(Data(message.utf8))
                exit(1)
            }
        }
    }
}
