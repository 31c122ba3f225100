import Measuring
import StallWatch

/// The cost of a turn for a loop with a probe.
enum ProbeCost {
    static let turns = 500_000
    static let reference = "two clock_gettime(CLOCK_MONOTONIC)"

    static var comparison: Comparison {
        Comparison(
            title: "A turn of a loop with a probe, mean of \(turns)", iterations: 9,
            ways: [.init(reference, twoClockReads), .init("beginTurn() and endTurn()", probe)], reference: reference
        )
    }

    /// The time of two bare reads of the clock, in nanoseconds.
    static func twoClockReads() -> Double {
        var sum: UInt64 = 0
        let cost = meanNanoseconds(turns) { sum &+= now() &+ now() }
        // Used, so that the optimizer keeps the reads.
        precondition(sum != 0)
        return cost
    }

    private static func probe() throws -> Double {
        let probe = LoopProbe(label: "measured")
        let monitor = try StallMonitor(.init(reports: .none))
        try monitor.watch(.probe(probe))
        try monitor.start()
        defer { monitor.stop() }
        return meanNanoseconds(turns) {
            probe.beginTurn()
            probe.endTurn()
        }
    }
}
