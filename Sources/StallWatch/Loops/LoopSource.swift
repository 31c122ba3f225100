import StackCapture
import StallReports

/// How one kind of loop is followed.
///
/// The recorder says what the loop does; the source knows everything else about it.
protocol LoopSource: AnyObject, Sendable {
    /// What kind of loop it is.
    var kind: StallReport.LoopKind { get }

    /// Whose stacks explain a stall that lasts now.
    func target(of recorder: TurnRecorder) -> CaptureTarget

    /// Whether the loop tells when it goes to wait, so that one that never does can be told.
    var tellsItsWaits: Bool { get }

    /// By how much the turn that began at `began` may have begun earlier, in nanoseconds; `nil` for a loop that tells of
    /// its turns by itself.
    func startUncertainty(of began: UInt64) -> UInt64?

    /// Whether the loop waits although no observer has seen it go to wait.
    func isWaitingUnobserved() -> Bool

    /// Whether the stack shows more runs of the loop than observers have seen being entered: `nesting` of them inside the
    /// outermost one.
    func isInUnobservedRun(_ stack: CapturedStack, nesting: Int) -> Bool

    /// The name of the mode that the app gave the number `index`.
    func modeName(_ index: UInt8) -> String?

    /// Sends the loop a heartbeat if one is due at `now`; `threshold` is how long it may take at the moment, in
    /// nanoseconds.
    ///
    /// Returns when the next one is due, or `nil` for a loop that tells of its turns by itself.
    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64?

    /// Stops following the loop.
    func remove()
}

extension LoopSource {
    func target(of recorder: TurnRecorder) -> CaptureTarget {
        recorder.lastThread.map(CaptureTarget.thread) ?? .unknown
    }

    var tellsItsWaits: Bool { false }

    func startUncertainty(of began: UInt64) -> UInt64? { nil }

    func isWaitingUnobserved() -> Bool { false }

    func isInUnobservedRun(_ stack: CapturedStack, nesting: Int) -> Bool { false }

    func modeName(_ index: UInt8) -> String? { nil }

    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64? { nil }

    func remove() {}
}

/// Whose stacks explain a stall.
enum CaptureTarget: Sendable, Equatable {
    /// The one thread that runs the loop.
    case thread(Int32)
    /// Every worker of a pool.
    case pool
    /// No thread has been seen yet.
    case unknown
}
