import StackCapture
import StallReports
import LinuxSupport

/// The raw facts of one stall, as the watchdog hands them on: addresses without names, nanoseconds.
struct StallRecord: Sendable {
    /// One stack taken while the stall lasted, or why there is none.
    struct Sample: Sendable {
        /// How old the turn was, in nanoseconds.
        var age: UInt64
        /// Whether the same turn was running before and after.
        var isValid: Bool
        var stack: Result<CapturedStack, CaptureError>
        /// The threads of the process, if the loop is a pool: its workers are among them.
        var workers: [OtherThread] = []
        /// The images that were mapped then.
        var images = ImageList()

        /// Whether there is no stack because there is no thread any more.
        var isThreadGone: Bool {
            if case .failure(let error) = stack { error.isThreadGone } else { false }
        }
    }

    /// The stack of a thread that is not the loop's.
    struct OtherThread: Sendable {
        var thread: ThreadIdentity
        var stack: Result<CapturedStack, CaptureError>
        /// The kind of stall that the thread's activity would be the cause of; `nil` if it is not known.
        var activity: Cause.Kind?
    }

    /// What is too long. The raw values are the words of the report's `kind`.
    enum Kind: String, Sendable {
        case stall, saturation, starvation
    }

    /// Whether it still lasts. The raw values are the words of the report's `state`.
    enum State: String, Sendable {
        case ongoing, ended, abandoned
    }

    /// The loop and its turn.
    struct Loop: Sendable, Equatable {
        var label: String
        var kind: LoopKind
        var mode: String?
        var turn: UInt64
        var nesting: Int
        var thread: ThreadIdentity?
    }

    /// A UUID, version 7.
    let id: String
    let kind: Kind
    let loop: Loop
    /// The threshold of the loop, in nanoseconds.
    let threshold: UInt64
    /// When the turn began.
    let startedAt: Timestamp
    /// How late the watchdog looked, in nanoseconds.
    let watchdogLate: UInt64
    var state: State
    /// How long the stall took, or has taken until now, in nanoseconds.
    var duration: UInt64
    var samples: [Sample] = []
    /// The other threads of the process at the first sample, if they were asked for, or when a deadlock was seen.
    var otherThreads: [OtherThread] = []
    /// Threads that were left out, because there are more than are captured.
    var omittedThreads = 0
    /// Turns that passed meanwhile, if they did.
    var turns: UInt64?
    /// Whether the stall is the time between two runs of the loop.
    var isGap = false
    /// By how much the stall may have begun earlier, in nanoseconds, where no observer tells of it.
    var startUncertainty: UInt64?
    /// What had been held back when the record was last brought up to date.
    var suppressed = SuppressionCounts()
    /// The images that `otherThreads` refers to.
    var otherImages = ImageList()
    /// Why, if one thread runs the loop.
    var cause: Cause?
    /// How threads can be captured here.
    var captureMethods: [CapturedStack.Method] = []
    /// Whether it has lasted for as long as the app does not want to wait.
    var isEscalated = false
}

extension StallRecord {
    /// A stall that has just been seen.
    init(_ stall: StallDetector.Stall, of loop: LoopMonitor, _ poll: LoopPoll, at now: UInt64) {
        let age = now &- stall.start
        let kind: Kind = poll.target == .pool ? .starvation : .stall
        self.init(
            kind, of: loop, poll, turn: stall.turn, nesting: stall.nesting,
            threshold: loop.threshold, age: age
        )
        isGap = stall.isGap
        startUncertainty = poll.startUncertainty
    }

    /// A saturation that has just been seen.
    init(
        _ saturation: SaturationDetector.Saturation, of loop: LoopMonitor, _ poll: LoopPoll, threshold: UInt64,
        at now: UInt64
    ) {
        self.init(
            .saturation, of: loop, poll, turn: saturation.firstTurn, nesting: saturation.nesting,
            threshold: threshold, age: now &- saturation.since
        )
        turns = saturation.lastTurn - saturation.firstTurn
    }

    private init(
        _ kind: Kind, of loop: LoopMonitor, _ poll: LoopPoll, turn: UInt64, nesting: Int,
        threshold: UInt64, age: UInt64
    ) {
        let startedAt = Timestamp(wallClockNanoseconds: wallClockNow() &- age)
        var thread: ThreadIdentity?
        if case .thread(let id) = poll.target { thread = .init(id) }
        self.init(
            id: ReportIdentifier.make(at: startedAt),
            kind: kind,
            loop: Loop(
                label: loop.label, kind: loop.source.kind, mode: kind == .saturation ? nil : poll.mode, turn: turn,
                nesting: nesting, thread: thread
            ),
            threshold: threshold,
            startedAt: startedAt,
            watchdogLate: age &- min(threshold, age),
            state: .ongoing,
            duration: age
        )
    }
}
