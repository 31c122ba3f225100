/// How one kind of loop is followed.
///
/// The recorder holds the loop's turns; the source knows everything else about the loop.
protocol LoopSource: AnyObject, Sendable {
    /// What kind of loop it is.
    var kind: LoopKind { get }

    /// Whether the loop reports its waits.
    ///
    /// Saturation can only be detected if it does.
    var reportsWaits: Bool { get }

    /// The code that has one frame on the stack for each run of the loop; empty if it is not known.
    var runFunction: Range<UInt64> { get }

    /// The threads whose stacks explain a stall that lasts now.
    func target(of recorder: TurnRecorder) -> CaptureTarget

    /// By how much the turn that began at `began` may have begun earlier, in nanoseconds; `nil` for a loop that reports
    /// its own turns.
    func startUncertainty(of began: UInt64) -> UInt64?

    /// Whether the loop waits although no observer has seen it go to wait.
    func isWaitingUnobserved() -> Bool

    /// The name of the mode that the app gave the number `index`.
    func modeName(_ index: UInt8) -> String?

    /// Sends the loop a heartbeat if one is due at `now`.
    ///
    /// - Parameters:
    ///   - recorder: The loop's turns.
    ///   - threshold: How long a turn may take, in nanoseconds.
    ///   - now: The time, in monotonic nanoseconds.
    /// - Returns: When the next one is due, or `nil` for a loop that reports its own turns.
    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64?

    /// Stops following the loop.
    func remove()
}

extension LoopSource {
    var reportsWaits: Bool { false }

    var runFunction: Range<UInt64> { 0..<0 }

    func target(of recorder: TurnRecorder) -> CaptureTarget {
        recorder.lastThread.map(CaptureTarget.thread) ?? .unknown
    }

    func startUncertainty(of began: UInt64) -> UInt64? { nil }

    func isWaitingUnobserved() -> Bool { false }

    func modeName(_ index: UInt8) -> String? { nil }

    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64? { nil }

    func remove() {}
}
