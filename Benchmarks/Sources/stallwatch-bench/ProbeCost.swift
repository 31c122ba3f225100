import StallWatch

/// What a loop with a probe pays for a turn.
enum ProbeCost {
    static let rounds = 9
    static let turns = 500_000

    /// The time of two bare reads of the clock, in nanoseconds.
    static func twoClockReads() -> Double {
        var sum: UInt64 = 0
        let cost = Samples((0..<rounds).map { _ in meanNanoseconds(turns) { sum &+= now() &+ now() } }).median
        // Used, so that the optimizer leaves the reads in.
        precondition(sum != 0)
        return cost
    }

    static func table() throws -> Table {
        let probe = LoopProbe(label: "measured")
        let monitor = try StallMonitor(.init(reports: .none))
        try monitor.watch(.probe(probe))
        try monitor.start()
        defer { monitor.stop() }
        let pair = Samples(
            (0..<rounds).map { _ in
                meanNanoseconds(turns) {
                    probe.beginTurn()
                    probe.endTurn()
                }
            }
        ).median
        let clock = twoClockReads()
        return Table(
            title: "A turn of a loop with a probe, median of \(rounds) × \(turns)",
            columns: ["what", "ns", "ratio"],
            rows: [
                ["two clock_gettime(CLOCK_MONOTONIC)", clock.digits(1), "1.00"],
                ["beginTurn() and endTurn()", pair.digits(1), (pair / clock).digits(2)],
            ]
        )
    }
}
