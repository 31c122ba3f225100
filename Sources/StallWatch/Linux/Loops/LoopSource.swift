import StallReports

/// The way in which a kind of loop is followed: everything about it except its turns, which the recorder holds.
protocol LoopSource: AnyObject, Sendable {
    var kind: LoopKind { get }

    /// The address range of the function that has one frame on the stack per run of the loop; empty if it is unknown.
    var runFunction: Range<UInt64> { get }

    /// The address range of the method that runs the loop only if its mode is not empty; empty if it is unknown.
    var runMethod: Range<UInt64> { get }

    /// Asks what waits for the loop's default mode; `nil` if the loop has none, or it is not observed.
    var modeReader: RunLoopModeReader? { get }

    /// Returns whether the turn that has not ended is one; if not, nothing is delayed.
    ///
    /// A loop that does not report its end is in no turn when its thread goes on with something else. The watchdog asks
    /// once per turn, when it is over the threshold, with the addresses of the thread's whole stack if they are known.
    func isInTurn(_ addresses: [UInt64]?) -> Bool

    /// What the loop's thread works on, in words; `nil` if the loop does not know.
    var work: String? { get }

    /// Returns the threads whose stacks explain a stall that is in progress now.
    func target(of recorder: TurnRecorder) -> CaptureTarget

    /// Returns by how many nanoseconds a turn may have begun earlier; `nil` for a loop that reports its own turns.
    func startUncertainty(of began: UInt64) -> UInt64?

    /// Whether the loop has ended, or is observed in another way.
    var isUnneeded: Bool { get }

    /// Returns whether the loop waits although no observer has seen the wait begin.
    func isWaitingUnobserved() -> Bool

    func modeName(_ index: UInt8) -> String?

    /// Sends the loop a heartbeat if one is due and the loop does not wait for work. Returns when the next one is due,
    /// in monotonic nanoseconds, or `nil` while none is planned.
    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64?

    /// The thread that will run the loop's turns, if that is known before the first one.
    var knownThread: Int32? { get }

    /// Whether the loop is known to run, although it has not reported a turn.
    var isKnownToRun: Bool { get }

    func remove()
}

extension LoopSource {
    var knownThread: Int32? { nil }

    var runFunction: Range<UInt64> { 0..<0 }

    var runMethod: Range<UInt64> { 0..<0 }

    var modeReader: RunLoopModeReader? { nil }

    func isInTurn(_ addresses: [UInt64]?) -> Bool { true }

    var work: String? { nil }

    func target(of recorder: TurnRecorder) -> CaptureTarget {
        recorder.lastThread.map(CaptureTarget.thread) ?? .unknown
    }

    func startUncertainty(of began: UInt64) -> UInt64? { nil }

    var isUnneeded: Bool { false }

    func isWaitingUnobserved() -> Bool { false }

    func modeName(_ index: UInt8) -> String? { nil }

    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64? { nil }

    var isKnownToRun: Bool { false }

    func remove() {}
}

typealias LoopKind = StallReport.LoopKind

extension LoopKind {
    /// Whether the loop reports its own turns; of others, a turn is the time until a heartbeat has run.
    var reportsTurns: Bool { self == .runLoop || self == .probe }
}

/// The threads whose stacks explain a stall.
enum CaptureTarget: Sendable, Equatable {
    case thread(Int32)
    case pool
    /// No thread, because none has run the loop yet.
    case unknown
}
