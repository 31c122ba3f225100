// The words of a report's vocabulary. Each type is a struct around its text, not an enum: an older reader keeps a word
// that a later version added, where an enum would refuse the whole report.

/// A file's name with a line, such as `NoteStore.swift:88`.
package func sourcePlace(_ file: String, _ line: Int?) -> String {
    StallReport.fileName(file) + (line.map { ":\($0)" } ?? "")
}

extension StallReport {
    /// The interpreters whose functions are those of a script, by the names of their executables without a version.
    private static let interpreters = [
        "gjs": "JavaScript", "gjs-console": "JavaScript", "lua": "Lua", "perl": "Perl", "php": "PHP",
        "python": "Python",
        "ruby": "Ruby",
    ]

    /// The language that an executable interprets; `nil` for any other program.
    ///
    /// By its name alone, such as `python3.11`.
    package static func interpretedLanguage(ofExecutable path: String) -> String? {
        let name = fileName(path)
        return interpreters[name] ?? interpreters[String(name.prefix { !$0.isNumber })]
    }

    /// A kind of delay that a report describes.
    ///
    /// Later versions may add kinds.
    public struct Kind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// One turn that exceeded the threshold.
        public static let stall = Kind(rawValue: "stall")
        /// A loop that hardly waited for a long time, although its turns were short.
        public static let saturation = Kind(rawValue: "saturation")
        /// A queue or a pool that did not start new work in time.
        public static let starvation = Kind(rawValue: "starvation")
        /// A loop that ran all the time without work: something was always ready, or its mode had no sources.
        public static let spinning = Kind(rawValue: "spinning")
        /// A run loop in another mode than its default mode, for which timers or the main queue waited.
        public static let modeStarvation = Kind(rawValue: "modeStarvation")
        /// An operation of a Swift task that did not end within its limit.
        public static let overdue = Kind(rawValue: "overdue")
    }

    /// The state of a stall when the monitor last wrote its report.
    ///
    /// Later versions may add states.
    public struct State: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The stall continued.
        public static let ongoing = State(rawValue: "ongoing")
        /// The stall had ended; the duration is final.
        public static let ended = State(rawValue: "ended")
        /// The process died, or the app stopped the monitor, before the stall ended.
        ///
        /// The duration is the last one that the monitor recorded.
        public static let abandoned = State(rawValue: "abandoned")
    }

    /// A kind of code that a run loop calls during a turn.
    ///
    /// Later versions may add callouts.
    public struct Callout: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A timer.
        public static let timer = Callout(rawValue: "timer")
        /// A source that the app signals (version 0).
        public static let source0 = Callout(rawValue: "source0")
        /// A source that the kernel signals (version 1).
        public static let source1 = Callout(rawValue: "source1")
        /// A block passed to `RunLoop.perform`.
        public static let performedBlock = Callout(rawValue: "performedBlock")
        /// A run loop observer of the app.
        public static let observer = Callout(rawValue: "observer")
        /// The main dispatch queue, which also runs the main actor.
        public static let mainQueue = Callout(rawValue: "mainQueue")
        /// No callout: the time between two runs of the loop.
        public static let outside = Callout(rawValue: "outside")
    }

    /// A kind of loop.
    ///
    /// Later versions may add kinds.
    public struct LoopKind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A `CFRunLoop`, which also underlies Foundation's `RunLoop`.
        public static let runLoop = LoopKind(rawValue: "runLoop")
        /// The main dispatch queue, in a program that does not run the main run loop.
        public static let mainQueue = LoopKind(rawValue: "mainQueue")
        /// A serial dispatch queue.
        public static let dispatchQueue = LoopKind(rawValue: "dispatchQueue")
        /// One of the system's global dispatch queues.
        public static let globalQueue = LoopKind(rawValue: "globalQueue")
        /// The thread pool that runs Swift tasks.
        public static let cooperativePool = LoopKind(rawValue: "cooperativePool")
        /// A SwiftNIO event loop.
        public static let eventLoop = LoopKind(rawValue: "eventLoop")
        /// A serial executor, which runs actors.
        public static let serialExecutor = LoopKind(rawValue: "serialExecutor")
        /// A task executor, with one thread or several.
        public static let taskExecutor = LoopKind(rawValue: "taskExecutor")
        /// A loop that reports its turns through a ``LoopProbe``.
        public static let probe = LoopKind(rawValue: "probe")
        /// No loop: an operation with a limit, whose name is the label.
        public static let operation = LoopKind(rawValue: "operation")
    }

    /// The state of a thread at its capture.
    ///
    /// Later versions may add states.
    public struct ThreadState: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// On a CPU or ready to run.
        public static let running = ThreadState(rawValue: "running")
        /// Blocked in a system call or a page fault.
        public static let blocked = ThreadState(rawValue: "blocked")
        /// Blocked in a wait that no signal can end (state D of proc(5)).
        public static let uninterruptible = ThreadState(rawValue: "uninterruptible")
    }

    /// A method of capturing a stack.
    ///
    /// Later versions may add methods.
    public struct CaptureMethod: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The watchdog read the stack of a blocked thread, without stopping the thread.
        public static let read = CaptureMethod(rawValue: "read")
        /// A helper process stopped the thread with ptrace(2) while its stack was copied.
        public static let ptrace = CaptureMethod(rawValue: "ptrace")
        /// A signal handler on the thread copied the stack.
        public static let signal = CaptureMethod(rawValue: "signal")
        /// The kernel copied the stack of a running thread inside a system call, in the interrupt of a perf event.
        public static let perf = CaptureMethod(rawValue: "perf")
    }

    /// A kind of frame.
    ///
    /// Later versions may add kinds.
    public struct FrameKind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A function on the thread's stack.
        public static let code = FrameKind(rawValue: "code")
        /// A suspended async function that awaits the function of the frame before it.
        ///
        /// It is in the memory of its task, not on a stack.
        public static let asyncCaller = FrameKind(rawValue: "asyncCaller")
    }

    /// What the compiler made a function for.
    ///
    /// More words may come.
    public struct CompilerGenerated: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Code that several alike functions share: its name is one of theirs, and another one may have been called.
        public static let merged = CompilerGenerated(rawValue: "merged")
        /// Code that stands for no line of a source, such as a derived conformance.
        public static let synthesized = CompilerGenerated(rawValue: "synthesized")
        /// Gives the address of a global variable, which it initializes the first time.
        public static let accessor = CompilerGenerated(rawValue: "accessor")
        /// Passes a call on: a thunk, a protocol's witness, a partial application.
        public static let thunk = CompilerGenerated(rawValue: "thunk")
        /// Copies, destroys or moves values, in a function of its own to save code.
        public static let outlined = CompilerGenerated(rawValue: "outlined")
        /// Makes type metadata or is part of it.
        public static let metadata = CompilerGenerated(rawValue: "metadata")
        /// Code that a macro expanded to: its lines are in no source file.
        public static let macro = CompilerGenerated(rawValue: "macro")
    }
}

extension StallReport.Callout {
    /// The innermost callout in a stack, which belongs to the turn; `symbols` are the stack's, innermost first.
    package init?(symbols: [String?]) {
        guard let callout = symbols.lazy.compactMap({ Self(symbol: $0) }).first else { return nil }
        self = callout
    }

    /// The callout of a function through which a CFRunLoop calls out (CFRunLoop.c); `nil` for any other function.
    package init?(symbol: String?) {
        // Most functions are none, and this is asked for every frame.
        guard let symbol, symbol.hasPrefix("__CFRUNLOOP_IS_") else { return nil }
        switch symbol {
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__": self = .timer
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION__": self = .source0
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION__": self = .source1
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__": self = .performedBlock
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION__": self = .observer
        case "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__": self = .mainQueue
        default: return nil
        }
    }
}

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
    /// The app had paused the monitor, or the loop was in an ignored scope.
    case paused
    /// The thread that runs the loop had ended.
    case threadEnded
    /// The stall repeated a reported one, and was not occurrence 1, 2, 4, 8, … of its fingerprint nor four times as long.
    case repeated
    /// The monitor had reached the limit of reports per minute, or of reports on overdue operations at a time.
    case rateLimit
}

/// The number of suppressions for each reason.
public struct SuppressionCounts: Codable, Sendable, Equatable {
    // Only counts other than 0, so that equal counts are equal values.
    private var counts: [String: Int] = [:]

    package init() {}

    package mutating func add(_ other: SuppressionCounts) {
        counts.merge(other.counts) { $0 + $1 }
    }

    /// The alphabetically first reason with a negative count, and that count; `nil` if there is none.
    package var firstNegative: (reason: String, count: Int)? {
        counts.filter { $0.value < 0 }.min { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

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
