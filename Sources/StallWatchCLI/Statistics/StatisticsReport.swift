/// The output of `stats --json`.
struct StatisticsReport: Encodable {
    let files: Int
    let stalls: Int
    let suppressed: [String: Int]
    let reportsDropped: Int
    let reportsLost: Int
    let reportsRemoved: Int
    let reportsRecovered: Int
    let failedWrites: Int
    let lastWriteError: String?
    let loops: [Loop]

    struct Loop: Encodable {
        let label: String
        let watchedSeconds: Double
        let turns: UInt64
        let busySeconds: Double
        let stalls: Int
        let stallSeconds: Double
        /// Upper bounds, at most 12.5 % too large; left out without turns, and for what took over 4.8 hours.
        let p50Milliseconds: Double?
        let p99Milliseconds: Double?
        let maxMilliseconds: Double?
        /// The threshold at the end of the last file; left out if it has none.
        let thresholdMilliseconds: Double?
        let isThresholdAdaptive: Bool
    }

    init(_ sum: StatisticsSum) {
        files = sum.files
        stalls = sum.stalls
        suppressed = sum.suppressed
        reportsDropped = sum.reportsDropped
        reportsLost = sum.reportsLost
        reportsRemoved = sum.reportsRemoved
        reportsRecovered = sum.reportsRecovered
        failedWrites = sum.failedWrites
        lastWriteError = sum.lastWriteError
        loops = sum.loops.map { loop in
            Loop(
                label: loop.label, watchedSeconds: loop.watchedSeconds, turns: loop.turns,
                busySeconds: loop.busySeconds, stalls: loop.stalls, stallSeconds: loop.stallSeconds,
                p50Milliseconds: loop.milliseconds(quantile: 0.5), p99Milliseconds: loop.milliseconds(quantile: 0.99),
                maxMilliseconds: loop.milliseconds(quantile: 1),
                thresholdMilliseconds: loop.thresholdMilliseconds, isThresholdAdaptive: loop.isThresholdAdaptive
            )
        }
    }
}
