import LinuxSupport
import StackCapture
import StallReports

/// The raw facts of one stall, as the watchdog submits them: addresses without names, times in nanoseconds.
struct StallRecord: Sendable {
    struct Sample: Sendable {
        /// The age of the turn at the capture, in nanoseconds.
        var age: UInt64
        /// Whether the same turn was in progress before and after the capture.
        var isValid: Bool
        var stack: Result<CapturedStack, CaptureFailure>
        /// The threads of the process if the loop is a pool, whose workers are among them.
        var workers: [OtherThread] = []
        var images = ImageList()
        var isEarly = false
        var wasStopPermitted = true
        /// The age of the turn when the thread was first seen in this place, in nanoseconds.
        var seenFrom = UInt64.max
        /// The age of the turn when the thread was last seen in this place, in nanoseconds.
        var seenUntil: UInt64 = 0
        var timesSeen = 1
        /// The thread's CPU and run-queue time when it was first and last seen here; `nil` if it is not known.
        var used: (from: UInt64, to: UInt64)?
        /// The number of the thread's time slices right before the capture; 0 if it is not known.
        var slices: UInt64 = 0
        /// What the thread was found to do here, ascending by time; empty for a pool.
        var observations: [Observation] = []

        var isThreadGone: Bool {
            if case .failure(let error) = stack { error.isThreadGone } else { false }
        }

        var isPending: Bool {
            if case .failure(let error) = stack { error.isPending } else { false }
        }
    }

    struct OtherThread: Sendable {
        var thread: ThreadIdentity
        var stack: Result<CapturedStack, CaptureFailure>
        var wait: ThreadWait?
        /// The kind of stall that the thread's activity would be the cause of; `nil` if it is not known.
        var activity: Cause.Kind?
    }

    typealias Kind = StallKind
    typealias State = StallState
    typealias Loop = StallReport.LoopDescription

    static let maximumOtherThreads = 256
    static let maximumSamples = 20

    /// The report's id: a UUID, version 7.
    let id: String
    let kind: Kind
    var loop: Loop
    let threshold: UInt64
    /// When the turn's age begins to count, by the wall clock.
    let startedAt: Timestamp
    /// The lateness of the watchdog's first poll, in nanoseconds.
    let watchdogLate: UInt64
    var state: State
    var duration: UInt64
    var samples: [Sample] = []
    /// The other threads at the first sample, if the configuration asks for them, or since a deadlock was found.
    var otherThreads: [OtherThread] = []
    /// Whether they are still to be captured: none has been, or a busy machine left no time for some.
    var lacksThreads: Bool {
        otherThreads.isEmpty
            || otherThreads.contains { thread in
                if case .failure(let failure) = thread.stack {
                    [.outOfTime, .timedOut].contains(failure)
                } else {
                    false
                }
            }
    }
    /// The number of threads that were not captured because there are too many.
    var omittedThreads = 0
    /// The number of turns while the loop was saturated or spun.
    var turns: UInt64?
    /// How the loop used its time then; `nil` for a stall.
    var activity: StallReport.Activity?
    var isGap = false
    /// The time by which the stall may have begun earlier, in nanoseconds; `nil` if observers saw it begin.
    var startUncertainty: UInt64?
    var suppressed = SuppressionCounts()
    var otherImages = ImageList()
    /// The cause, if one thread runs the loop.
    var cause: Cause?
    var captureMethods: [StallReport.CaptureMethod] = []
    var unwinder: Unwinder?
    /// What the watched loops did before; `nil` for an overdue operation.
    var leadUp: LeadUp?
    /// What the loop says that its thread works on; `nil` if it does not know.
    var work: String?
    /// The most items that the pool runs at the same time, for each priority; `nil` if that is not known.
    var poolWidth: Int?
    /// The name of the pool's threads; `nil` if that is not known.
    var poolWorkers: String?
    /// The pool of a pinned thread; `nil` for other kinds.
    var pool: StallReport.Pool?
    var isEscalated = false
    /// The number of turns over the threshold that ended unseen and that this record stands for.
    var missed = 0
    /// Why such a turn has no samples.
    var missedReason: String?
    /// What an overdue operation waits for; `nil` for other kinds.
    var operation: OverdueOperation?
    /// What waited for the loop, of a turn that was looked at; `nil` if nothing is known.
    var victims: StallReport.Victims?
    /// The process's tasks, of a dump of a hang; `nil` if they are not read.
    var tasks: CapturedTasks?
    /// Receives the report in place of the outputs; `nil` for a stall of the app.
    var receiver: StallReceiver?
}

/// What the watched loops did in the seconds before a stall, and what the others did during it.
struct LeadUp: Sendable, Equatable {
    /// When the stalled turn began to count, in monotonic nanoseconds.
    let start: UInt64
    var own: LoopTurns
    var others: [LoopTurns]
    let omittedLoops: Int

    /// The time before a stall that counts, in nanoseconds: 5 s.
    static let window: UInt64 = 5_000_000_000
}

struct LoopTurns: Sendable, Equatable {
    var label: String
    var kind: LoopKind
    /// The turns of a millisecond or more, oldest first; at most as many as a loop keeps, and those of earlier readings.
    var turns: [TurnHistory.Turn]
    /// Whether the loop had more such turns than it keeps.
    var isCut = false

    mutating func add(_ later: LoopTurns) {
        let first = later.turns.first?.began ?? .max
        // A turn that lasted has ended meanwhile: the later reading has its end, unless the loop has replaced it.
        turns = turns.filter { $0.began < first && $0.ended != nil } + later.turns
        isCut = isCut || later.isCut
    }
}
