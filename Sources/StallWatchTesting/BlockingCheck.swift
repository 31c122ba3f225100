import StallReports
import StallWatch
import Testing

/// One run of blocking code, which a probe reports as one turn of a loop.
struct BlockingCheck {
    private let probe: LoopProbe
    let scope: StallScope

    init(_ budget: StallBudget, baseline: StallBaseline?, _ location: SourceLocation) {
        probe = SharedMonitor.shared.takeProbe()
        scope = StallScope(
            loops: [.probe(probe)], budget: budget, function: nil, location: location, baseline: baseline)
    }

    /// Runs the code as one turn.
    func run<Success, Failure>(_ body: () throws(Failure) -> Success) throws(Failure) -> Success {
        probe.beginTurn()
        defer { probe.endTurn() }
        return try body()
    }

    /// Ends the check.
    ///
    /// - Returns: Its stalls.
    func finish() -> [StallFinding] {
        defer { SharedMonitor.shared.giveBack(probe) }
        return SharedMonitor.shared.leaveBlocking(scope)
    }
}
