import StallReports

/// The output of `watch --json` for one interval.
struct WatchLine: Encodable {
    let time: Timestamp
    let pid: Int32
    let loops: [Loop]
    /// The latest stalls, the newest first.
    let stalls: [ControlAnswer.StallSummary]
    /// Why there is no newer answer; none if this is the newest.
    let problem: String?

    /// A loop.
    struct Loop: Encodable {
        let label: String
        let turnMilliseconds: Double?
        let thresholdMilliseconds: Double
        /// The share of the interval that the loop has spent in turns, 0 to 1.
        let busy: Double?
        let stalls: Int
    }

    init(_ frame: WatchFrame) {
        time = frame.time
        pid = frame.pid
        loops = frame.loops.map { loop in
            Loop(
                label: loop.state.label, turnMilliseconds: loop.state.turnMilliseconds,
                thresholdMilliseconds: loop.state.thresholdMilliseconds, busy: loop.busy, stalls: loop.state.stalls)
        }
        stalls = frame.stalls
        problem = frame.problem
    }
}
