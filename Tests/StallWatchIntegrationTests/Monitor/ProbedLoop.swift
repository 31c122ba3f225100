import StallWatch

/// A loop whose turns the test makes itself.
struct ProbedLoop {
    let probe = LoopProbe(label: "probe")

    /// One turn on the calling thread.
    func turn(_ work: () -> Void) {
        probe.beginTurn()
        work()
        probe.endTurn()
    }
}
