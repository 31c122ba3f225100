/// Learns a loop's threshold from the durations of its turns.
///
/// A pure value: the caller passes the time and the loop's histogram. The threshold is a multiple of the duration that at
/// most one in 1,000 turns exceeds (*p99.9*), within given bounds. The turns are divided into windows. Of the last
/// ``windows`` of them, the second largest p99.9 counts. So one window with stalls does not raise the threshold, a load that
/// changes for good does after two windows, and bursts that come twice in all windows keep it up.
struct AdaptiveThreshold {
    /// The threshold is this multiple of the p99.9: the longest turn of a healthy day is often two to three times that.
    static let multiple: UInt64 = 4
    /// The least length of a window, in nanoseconds.
    static let window: UInt64 = 60_000_000_000
    /// The least number of turns in a window: with fewer, p99.9 is the longest turn.
    static let leastTurns: UInt64 = 1_000
    /// The number of windows that count, and that are closed before the threshold leaves its upper bound.
    static let windows = 15

    /// The bounds of the threshold, in nanoseconds.
    let bounds: ClosedRange<UInt64>
    /// The threshold, in nanoseconds.
    private(set) var threshold: UInt64
    /// The p99.9 of the last windows in nanoseconds, oldest first.
    private var unusual: [UInt64] = []
    /// The counts at the beginning of the current window; `nil` before the first.
    private var atBeginning: TurnHistogram.Snapshot?
    /// When the current window may end, in monotonic nanoseconds.
    private var nextReview: UInt64 = 0

    /// Begins at the upper one of the bounds, in nanoseconds.
    init(_ bounds: ClosedRange<UInt64>) {
        self.bounds = bounds
        threshold = bounds.upperBound
    }

    /// Learns from the turns so far, at the end of a window; reads the histogram once per ``window``.
    mutating func review(at now: UInt64, _ histogram: () -> TurnHistogram.Snapshot) {
        guard bounds.lowerBound < bounds.upperBound, now >= nextReview else { return }
        nextReview = now &+ Self.window
        let current = histogram()
        guard let before = atBeginning else { return atBeginning = current }
        let turns = current.since(before)
        // A window with too few turns goes on.
        guard turns.turns >= Self.leastTurns else { return }
        atBeginning = current
        unusual.append(turns.upperBound(quantile: 0.999))
        if unusual.count > Self.windows { unusual.removeFirst() }
        guard unusual.count == Self.windows, let second = unusual.sorted().dropLast().last else { return }
        // Cannot overflow: the histogram's longest bound is 2^44.
        threshold = min(max(second &* Self.multiple, bounds.lowerBound), bounds.upperBound)
    }
}

extension LoopMonitor {
    /// Learns an adaptive threshold from the loop's turns so far; `adaptive` is `nil` for a fixed one.
    func learnThreshold(_ adaptive: inout AdaptiveThreshold?, at time: UInt64) {
        let bounds = thresholdBounds
        guard bounds.lowerBound < bounds.upperBound else { return adaptive = nil }
        var learning = adaptive.flatMap { $0.bounds == bounds ? $0 : nil } ?? AdaptiveThreshold(bounds)
        learning.review(at: time, recorder.histogram.snapshot)
        if learning.threshold != threshold { learn(learning.threshold, within: bounds) }
        adaptive = learning
    }
}
