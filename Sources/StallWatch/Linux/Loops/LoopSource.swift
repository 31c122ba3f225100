import StallReports

/// How a kind of loop is followed, except its turns (the recorder has them) and what only run loops or heartbeats have.
protocol LoopSource: AnyObject, Sendable {
    var kind: LoopKind { get }

    /// The address range of the function that has one frame on the stack per run of the loop; empty if it is unknown.
    var runFunction: Range<UInt64> { get }

    /// Returns whether the turn that has not ended is one; if not, nothing is delayed.
    ///
    /// A loop that does not report its end is in no turn when its thread goes on with something else. The watchdog asks
    /// once per turn, when it is over the threshold, with the addresses of the thread's whole stack if they are known.
    func isInTurn(_ addresses: [UInt64]?) -> Bool

    /// What the loop's thread works on, in words; `nil` if the loop does not know.
    var work: String? { get }

    /// The most items that a pool runs at the same time, for each priority; `nil` if it is not known, or is no pool.
    var width: Int? { get }

    func target(of recorder: TurnRecorder) -> CaptureTarget

    func isWaitingUnobserved() -> Bool

    /// The thread that will run the loop's turns, if that is known before the first one.
    var knownThread: Int32? { get }

    /// Begins to leave the loop, once; never waits for the app.
    func remove()

    /// Waits until the loop is observed, or left, or until a deadline (monotonic ns); the app may hold its lock.
    func settle(until deadline: UInt64)

    /// Receives the final reports of a loop of the monitor's own, which are in no output and in no number; must not wait.
    var receiver: StallReceiver? { get }
}

typealias StallReceiver = @Sendable (StallReport) -> Void

extension LoopSource {
    var knownThread: Int32? { nil }

    var runFunction: Range<UInt64> { 0..<0 }

    func isInTurn(_ addresses: [UInt64]?) -> Bool { true }

    var work: String? { nil }

    var width: Int? { nil }

    func target(of recorder: TurnRecorder) -> CaptureTarget {
        recorder.lastThread.map(CaptureTarget.thread) ?? .unknown
    }

    func isWaitingUnobserved() -> Bool { false }

    func remove() {}

    func settle(until deadline: UInt64) {}

    var receiver: StallReceiver? { nil }
}

typealias LoopKind = StallReport.LoopKind

extension LoopKind {
    /// Whether the loop reports its own turns; of others, a turn is the time until a heartbeat has run.
    var reportsTurns: Bool { self == .runLoop || self == .probe }
}

enum CaptureTarget: Sendable, Equatable {
    case thread(Int32)
    case pool
    /// The threads of a pool that are known.
    case threads([Int32])
    case unknown

    /// The threads of a pool, if they are known.
    var knownThreads: [Int32]? {
        guard case .threads(let threads) = self else { return nil }
        return threads
    }
}
