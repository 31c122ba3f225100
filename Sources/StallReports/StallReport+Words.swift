/// A word of a report's vocabulary, to which later versions may add words.
///
/// A struct around its text, not an enum: a reader keeps a word that a later version has added, where an enum would
/// refuse the whole report. `Subject` keeps the vocabularies apart: it is what the words describe.
public struct Word<Subject>: RawRepresentable, Codable, Sendable, Hashable {
    /// The word in the JSON.
    public let rawValue: String

    /// Accepts any word, known or unknown.
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// A file's name with a line, such as `NoteStore.swift:88`.
package func sourcePlace(_ file: String, _ line: Int?) -> String {
    StallReport.fileName(file) + (line.map { ":\($0)" } ?? "")
}

extension StallReport {
    /// The languages of script interpreters, by the executable's name without a version.
    private static let interpreters = [
        "gjs": "JavaScript", "gjs-console": "JavaScript", "lua": "Lua", "perl": "Perl", "php": "PHP",
        "python": "Python", "ruby": "Ruby",
    ]

    /// Returns the language that an executable interprets, by its name, such as `python3.11`; `nil` for other programs.
    package static func interpretedLanguage(ofExecutable path: String) -> String? {
        let name = fileName(path)
        return interpreters[name] ?? interpreters[String(name.prefix { !$0.isNumber })]
    }

    /// A kind of code that a run loop calls during a turn.
    package typealias Callout = Word<CalloutWords>

    package typealias LoopKind = Word<LoopDescription>

    package typealias ThreadState = Word<ThreadDescription>

    package typealias CaptureMethod = Word<Sample>

    package typealias FrameKind = Word<Frame>

    package typealias GeneratedCode = Word<GeneratedCodeWords>

    // The subjects of vocabularies that have none of their own.

    package enum CalloutWords {}
    package enum GeneratedCodeWords {}
    /// The subject of the words for the confidence in a cause.
    public enum ConfidenceWords {}
}

/// A kind of delay that a report describes.
public typealias StallKind = Word<StallReport>

extension StallKind {
    /// One turn that exceeded the threshold.
    public static var stall: Self { Self(rawValue: "stall") }
    /// A loop that hardly waited for a long time, although its turns were short.
    public static var saturation: Self { Self(rawValue: "saturation") }
    /// A queue or a pool that did not start new work in time.
    public static var starvation: Self { Self(rawValue: "starvation") }
    /// A loop that ran all the time without work: something was always ready, or its mode had no sources.
    public static var spinning: Self { Self(rawValue: "spinning") }
    /// A run loop in another mode than its default mode, for which timers or the main queue waited.
    public static var modeStarvation: Self { Self(rawValue: "modeStarvation") }
    /// A run loop with a timer that was due, which no thread ran.
    public static var notRun: Self { Self(rawValue: "notRun") }
    /// An operation of a Swift task that did not end within its limit.
    public static var overdue: Self { Self(rawValue: "overdue") }
    /// A thread of a task pool that one task kept, blocked or computing, so that no other task could run on it.
    public static var pinned: Self { Self(rawValue: "pinned") }
}

/// The state of a stall when the monitor last wrote its report.
public typealias StallState = Word<StallStates>

/// The subject of the words for a stall's state.
public enum StallStates {}

extension StallState {
    /// The stall continued.
    public static var ongoing: Self { Self(rawValue: "ongoing") }
    /// The stall had ended; the duration is final.
    public static var ended: Self { Self(rawValue: "ended") }
    /// The process died or was stopped, or the app stopped or paused the monitor, before the stall ended.
    ///
    /// The duration is the last one that the monitor recorded.
    public static var abandoned: Self { Self(rawValue: "abandoned") }
}

extension StallReport.Callout {
    package static var timer: Self { Self(rawValue: "timer") }
    /// A source that the app signals (version 0).
    package static var source0: Self { Self(rawValue: "source0") }
    /// A source that the kernel signals (version 1).
    package static var source1: Self { Self(rawValue: "source1") }
    /// A block passed to `RunLoop.perform`.
    package static var performedBlock: Self { Self(rawValue: "performedBlock") }
    package static var observer: Self { Self(rawValue: "observer") }
    /// The main dispatch queue, which also runs the main actor.
    package static var mainQueue: Self { Self(rawValue: "mainQueue") }
    /// No callout: the time between two runs of the loop.
    package static var outside: Self { Self(rawValue: "outside") }
}

extension StallReport.LoopKind {
    /// A `CFRunLoop`, which also underlies Foundation's `RunLoop`.
    package static var runLoop: Self { Self(rawValue: "runLoop") }
    /// The main dispatch queue, in a program that does not run the main run loop.
    package static var mainQueue: Self { Self(rawValue: "mainQueue") }
    package static var dispatchQueue: Self { Self(rawValue: "dispatchQueue") }
    package static var globalQueue: Self { Self(rawValue: "globalQueue") }
    package static var cooperativePool: Self { Self(rawValue: "cooperativePool") }
    package static var eventLoop: Self { Self(rawValue: "eventLoop") }
    /// A serial executor, which runs actors.
    package static var serialExecutor: Self { Self(rawValue: "serialExecutor") }
    /// A task executor, with one thread or several.
    package static var taskExecutor: Self { Self(rawValue: "taskExecutor") }
    /// A thread pool of SwiftNIO.
    package static var threadPool: Self { Self(rawValue: "threadPool") }
    /// A loop that reports its turns through a ``LoopProbe``.
    package static var probe: Self { Self(rawValue: "probe") }
    /// No loop: an operation with a limit, whose name is the label.
    package static var operation: Self { Self(rawValue: "operation") }

    /// `runLoop` as `run loop`.
    package var inWords: String {
        rawValue.reduce(into: "") { $0 += $1.isUppercase ? " \($1.lowercased())" : String($1) }
    }
}

extension StallReport.ThreadState {
    package static var running: Self { Self(rawValue: "running") }
    /// Blocked in a system call or a page fault.
    package static var blocked: Self { Self(rawValue: "blocked") }
    /// Blocked in a wait that no signal can end (state D of proc(5)).
    package static var uninterruptible: Self { Self(rawValue: "uninterruptible") }
}

extension StallReport.CaptureMethod {
    /// The watchdog read the stack of a blocked thread, without stopping the thread.
    package static var read: Self { Self(rawValue: "read") }
    /// A helper process stopped the thread with ptrace(2) while its stack was copied.
    package static var ptrace: Self { Self(rawValue: "ptrace") }
    /// A signal handler on the thread copied the stack.
    package static var signal: Self { Self(rawValue: "signal") }
}

extension StallReport.FrameKind {
    package static var code: Self { Self(rawValue: "code") }
    /// A suspended async function, in its task's memory, that awaits the function of the frame before it.
    package static var asyncCaller: Self { Self(rawValue: "asyncCaller") }
    /// The kernel's call of a signal handler, whose frame comes before it; the frame after it is what the signal interrupted.
    package static var signal: Self { Self(rawValue: "signal") }
}

extension StallReport.GeneratedCode {
    /// Code that several alike functions share: its name is one of theirs, and another one may have been called.
    package static var merged: Self { Self(rawValue: "merged") }
    /// Code that stands for no line of a source, such as a derived conformance.
    package static var synthesized: Self { Self(rawValue: "synthesized") }
    /// Gives the address of a global variable, which it initializes the first time.
    package static var accessor: Self { Self(rawValue: "accessor") }
    /// Passes a call on: a thunk, a protocol's witness, a partial application.
    package static var thunk: Self { Self(rawValue: "thunk") }
    /// Copies, destroys or moves values, in a function of its own to save code.
    package static var outlined: Self { Self(rawValue: "outlined") }
    package static var metadata: Self { Self(rawValue: "metadata") }
    /// Code that a macro expanded to: its lines are in no source file.
    package static var macro: Self { Self(rawValue: "macro") }
}

extension StallReport.Callout {
    /// The callout as people call it: `main queue`.
    package var inWords: String {
        switch self {
        case .source0, .source1: "source"
        case .performedBlock: "block"
        case .mainQueue: "main queue"
        case .outside: "between two runs"
        default: rawValue
        }
    }

    /// The innermost callout in a stack, which belongs to the turn; `symbols` are the stack's, innermost first.
    package init?(symbols: [String?]) {
        guard let callout = symbols.lazy.compactMap({ Self(symbol: $0) }).first else { return nil }
        self = callout
    }

    /// The callout of a function through which a CFRunLoop calls out (CFRunLoop.c); `nil` for any other function.
    package init?(symbol: String?) {
        // This runs for every frame, and most functions are no callouts.
        guard let symbol, symbol.hasPrefix("__CFRUNLOOP_IS_"), let callout = callouts[symbol] else { return nil }
        self = callout
    }
}

extension Collection<StallReport.Frame> {
    /// Whether a stack is that of a run loop that has called nothing: if its thread is blocked, it waits for events.
    ///
    /// The app's code stands for a callout, too, because a stripped CoreFoundation has no names of those.
    package var isOfRunLoopItself: Bool {
        guard let run = firstIndex(where: { $0.symbol == "CFRunLoopRunSpecific" }) else { return false }
        return self[..<run].allSatisfy { !$0.isInApp && StallReport.Callout(symbol: $0.symbol) == nil }
    }

    /// Whether a function of these names is among the frames; symbols' versions and parameters do not count.
    package func call(_ names: Set<String>) -> Bool {
        contains { frame in
            frame.function.map { names.contains(String($0.prefix { $0 != "@" && $0 != "(" })) } ?? false
        }
    }
}

extension StallReport {
    /// The functions that wait for a semaphore, which has no owner.
    package static let semaphoreWaits: Set = ["dispatch_semaphore_wait", "DispatchSemaphore.wait", "sem_wait"]
    package static let groupWaits: Set = ["dispatch_group_wait", "DispatchGroup.wait"]
    /// The functions that wait for a work item, by a group of its own.
    static let workItemWaits: Set = ["dispatch_block_wait", "DispatchWorkItem.wait"]
    /// The functions that wait for Foundation's operations, by a condition of theirs.
    static let operationWaits: Set = [
        "OperationQueue.waitUntilAllOperationsAreFinished", "Operation.waitUntilFinished",
    ]
}

private let callouts: [String: StallReport.Callout] = [
    "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__": .timer,
    "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION__": .source0,
    "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION__": .source1,
    "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__": .performedBlock,
    "__CFRUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION__": .observer,
    "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__": .mainQueue,
]

/// A reason for suppression: the monitor counts a delay over the threshold, and does not report it.
public enum SuppressionReason: String, Codable, Sendable, CaseIterable {
    /// The whole process was stopped, by SIGSTOP, the cgroup freezer or a paused virtual machine.
    ///
    /// The watchdog was late itself, and had not been waiting for a CPU.
    case processStopped
    /// The host of the virtual machine ran other machines on its CPUs (steal, proc_stat(5)), so the watchdog was late.
    ///
    /// Turns get a grace period of a fifth of the threshold, at most 50 ms, before they count as stalls.
    case cpuStolen
    /// The machine was suspended.
    case suspended
    /// A debugger was attached to the loop's thread.
    case debugger
    /// The app had paused the monitor.
    case paused
    /// The thread that runs the loop had ended.
    case threadEnded
    /// The stall repeated a reported one, and was not occurrence 1, 2, 4, 8, … of its fingerprint nor four times as long.
    case repeated
    /// The monitor had reached the limit of reports per minute, or of reports on overdue operations at a time.
    case rateLimit
    /// A task computed on a thread of its pool for longer than the threshold, or all of them did and a heartbeat was late, and
    /// no task waited for one; or the main task waited for its input or a child, and nothing for the main thread.
    case noTaskWaited
}

/// The number of suppressions for each reason.
public struct SuppressionCounts: Codable, Sendable, Equatable {
    // Only counts other than 0, so that equal counts are equal values.
    private var counts: [String: Int] = [:]

    package init() {}

    package mutating func add(_ other: SuppressionCounts) {
        counts.merge(other.counts, uniquingKeysWith: &+)
    }

    /// The reasons with a count other than 0, known or not, and these counts, sorted by reason.
    package var all: [(reason: String, count: Int)] { counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }

    /// The alphabetically first reason with a negative count, and that count; `nil` if there is none.
    package var firstNegative: (reason: String, count: Int)? { all.first { $0.count < 0 } }

    /// The number of suppressions for one reason; setting 0 removes it.
    public subscript(reason: SuppressionReason) -> Int {
        get { counts[reason.rawValue] ?? 0 }
        set { counts[reason.rawValue] = newValue == 0 ? nil : newValue }
    }

    /// Decodes an object with a count for each reason.
    ///
    /// The count of a missing reason is 0. Unknown reasons are kept.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if the value is not an object of integers. A negative count is not an error here.
    public init(from decoder: any Decoder) throws {
        counts = try decoder.singleValueContainer().decode([String: Int].self).filter { $0.value != 0 }
    }

    /// Encodes an object with a count for each reason, known or kept from the input.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: An error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        let all = SuppressionReason.allCases.map { ($0.rawValue, self[$0]) }
        // Through a container: there encoders convert no keys of a dictionary, which `init(from:)` could not convert back.
        var container = encoder.singleValueContainer()
        try container.encode(counts.merging(all) { known, _ in known })
    }
}

extension StallReport.ThreadDescription {
    package init(id: Int32, name: String? = nil) {
        self.id = id
        self.name = name
    }

    /// `thread 4711 "worker"`, or without the name.
    package var inWords: String {
        guard let name else { return "thread \(id)" }
        return "thread \(id)" + (Self.workers.contains(name) ? " of a dispatch queue" : " \"\(name)\"")
    }

    /// The names of libdispatch's workers: the last 15 bytes of the global queues' labels.
    package static let workers: Set = [
        "maintenance-qos", ".background-qos", "oot.utility-qos", "oot.default-qos", "r-initiated-qos",
        "interactive-qos", "-qos.overcommit",
    ]
}

extension StallReport {
    /// The loop's label if the thread runs it; else its words.
    package func name(of thread: ThreadDescription, stack: Int?) -> String {
        thread.id == loop.thread?.id ? loop.label : words(for: thread, stack: stack)
    }

    /// The thread's id with its name or, of one that runs tasks as its stack shows, the task pool.
    func words(for thread: ThreadDescription, stack: Int?) -> String {
        guard let name = thread.name, ThreadDescription.workers.contains(name), let stack,
            stacks.indices.contains(stack), provenFrames(ofStack: stack).areOfTaskPool
        else { return thread.inWords }
        return "thread \(thread.id) of the task pool"
    }
}

extension [StallReport.Frame] {
    /// Whether libdispatch has called a Swift task's job itself: not a serial queue, and no executor of the app's.
    fileprivate var areOfTaskPool: Bool {
        guard let job = lastIndex(where: { $0.symbol == "swift_job_run" }), job + 1 < count,
            self[job + 1].symbol == "_dispatch_continuation_pop"
        else { return false }
        return !self[job...].contains { $0.symbol?.hasPrefix("_dispatch_lane_") == true }
    }
}
