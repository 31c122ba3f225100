// The words of a report's vocabulary. Each is a struct over its text instead of an enum: a word that a later version
// adds is kept as it is by an older reader, where an enum would refuse the whole report.

extension StallReport {
    /// What kind of lateness a report is about.
    ///
    /// More kinds may come.
    public struct Kind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// One turn over the threshold.
        public static let stall = Kind(rawValue: "stall")
        /// A loop that did not come to wait for a long time, though its turns kept passing.
        public static let saturation = Kind(rawValue: "saturation")
        /// A pool of threads that did not start new work in time.
        public static let starvation = Kind(rawValue: "starvation")
    }

    /// Where a stall was when its report was last written.
    ///
    /// More states may come.
    public struct State: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// It still lasted.
        public static let ongoing = State(rawValue: "ongoing")
        /// It was over: the duration is final.
        public static let ended = State(rawValue: "ended")
        /// Nobody saw its end: the process died or the monitor was stopped before.
        ///
        /// The duration is the last one seen.
        public static let abandoned = State(rawValue: "abandoned")
    }

    /// What a turn of a run loop calls out to.
    ///
    /// More callouts may come.
    public struct Callout: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A timer.
        public static let timer = Callout(rawValue: "timer")
        /// A source that the app signals.
        public static let source0 = Callout(rawValue: "source0")
        /// A source that the kernel signals.
        public static let source1 = Callout(rawValue: "source1")
        /// A block given to `RunLoop.perform`.
        public static let performedBlock = Callout(rawValue: "performedBlock")
        /// An observer of the app.
        public static let observer = Callout(rawValue: "observer")
        /// The main dispatch queue, which is also the main actor.
        public static let mainQueue = Callout(rawValue: "mainQueue")
        /// None: the time between two runs of the loop.
        public static let outside = Callout(rawValue: "outside")
    }

    /// What kind of loop it is.
    ///
    /// More kinds may come.
    public struct LoopKind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A CFRunLoop, which is what a Foundation RunLoop is.
        public static let runLoop = LoopKind(rawValue: "runLoop")
        /// The main dispatch queue, in a program that does not run the main run loop.
        public static let mainQueue = LoopKind(rawValue: "mainQueue")
        /// A serial dispatch queue.
        public static let dispatchQueue = LoopKind(rawValue: "dispatchQueue")
        /// One of the system's global dispatch queues.
        public static let globalQueue = LoopKind(rawValue: "globalQueue")
        /// The pool of threads that runs Swift's tasks.
        public static let cooperativePool = LoopKind(rawValue: "cooperativePool")
        /// An event loop of SwiftNIO.
        public static let eventLoop = LoopKind(rawValue: "eventLoop")
        /// A loop that tells of its turns through a ``LoopProbe``.
        public static let probe = LoopKind(rawValue: "probe")
    }

    /// What a thread was doing when it was captured.
    ///
    /// More states may come.
    public struct ThreadState: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// On CPU, or waiting for one.
        public static let running = ThreadState(rawValue: "running")
        /// In a system call or a page fault that waits.
        public static let blocked = ThreadState(rawValue: "blocked")
        /// The same, and no signal can end the wait.
        public static let uninterruptible = ThreadState(rawValue: "uninterruptible")
    }

    /// How a stack was taken.
    ///
    /// More methods may come.
    public struct CaptureMethod: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The thread was blocked, and was read without being touched.
        public static let read = CaptureMethod(rawValue: "read")
        /// The thread was stopped with ptrace(2) while its stack was copied.
        public static let ptrace = CaptureMethod(rawValue: "ptrace")
        /// A signal handler on the thread copied its stack.
        public static let signal = CaptureMethod(rawValue: "signal")
    }

    /// What a frame is.
    ///
    /// More kinds may come.
    public struct FrameKind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A function that is on the thread's stack.
        public static let code = FrameKind(rawValue: "code")
        /// An async function that waits for the one before it: it is in a suspended task's memory, not on a stack.
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
    }
}
