/// What is known of one stall: a value that is written as one JSON file.
///
/// Durations are milliseconds, addresses and offsets are hexadecimal strings, times are UTC. Stacks, frames and images
/// are stored once and referred to by index. A field that is `nil` was not known, and is left out of the JSON.
///
/// `Schemas/stall-report.schema.json` describes the JSON for other programs. Within one ``schemaVersion`` fields and
/// words may be added, so a reader passes over fields that it does not know and expects words that it does not know; a
/// field that goes away or changes its meaning makes a new version, which older readers refuse.
public struct StallReport: Codable, Sendable, Equatable, Identifiable {
    /// The version of the shape that this library writes.
    ///
    /// It grows when a field changes its meaning or goes away; new fields may come without it.
    public static let currentSchemaVersion = 1

    /// The version of the report's shape.
    public var schemaVersion: Int
    /// A UUID (version 7: ids sort by time).
    public var id: String
    /// What kind of lateness it was.
    public var kind: Kind
    /// Whether the stall still lasted when the report was last written.
    public var state: State
    /// When the turn that stalled began.
    public var startedAt: Timestamp
    /// How long the stall took, or had taken when the report was last written.
    public var durationMilliseconds: Double
    /// The threshold that it went over.
    public var thresholdMilliseconds: Double
    /// The program.
    public var process: ProcessDescription
    /// What the app gave with the configuration.
    public var metadata: [String: String]
    /// The loop and the turn.
    public var loop: LoopDescription
    /// By how much the stall may have begun earlier.
    ///
    /// Only for loops that are watched by heartbeat, and after a run of the loop in a mode that is not watched.
    public var startUncertaintyMilliseconds: Double?
    /// Turns that passed while the loop did not come to wait.
    ///
    /// Only for a saturation.
    public var turns: UInt64?
    /// What the turn was running.
    public var callout: Callout?
    /// What makes two stalls the same: 16 hexadecimal digits made from the names of the app's functions on the stack.
    ///
    /// `nil` until these have been looked up.
    public var fingerprint: String?
    /// Stalls with the same fingerprint that came since the last one that was reported, and were only counted.
    public var repeats: Int
    /// The function that a developer should look at first.
    public var culprit: Culprit?
    /// Why there is no culprit; `nil` when there is one, or the functions' names have not been looked up yet.
    public var missingCulpritReason: String?
    /// Why it took so long; `nil` where no single thread runs the loop, or the thread could not be read.
    public var cause: Cause?
    /// The samples, oldest first.
    public var samples: [Sample]
    /// The other threads at the first sample, if the configuration asks for them, or when a deadlock was seen.
    public var otherThreads: [OtherThread]?
    /// Threads that are not in ``otherThreads`` because there are too many; `nil` when none is left out.
    public var omittedThreads: Int?
    /// Each stack: indices into ``frames``, innermost first.
    public var stacks: [[Int]]
    /// Each frame that is in a stack.
    public var frames: [Frame]
    /// Each image that a frame is in.
    public var images: [Image]
    /// The monitor that wrote the report.
    public var monitor: MonitorDescription

    package init(
        schemaVersion: Int,
        id: String,
        kind: Kind,
        state: State,
        startedAt: Timestamp,
        durationMilliseconds: Double,
        thresholdMilliseconds: Double,
        process: ProcessDescription,
        metadata: [String: String],
        loop: LoopDescription,
        startUncertaintyMilliseconds: Double? = nil,
        turns: UInt64? = nil,
        callout: Callout? = nil,
        fingerprint: String? = nil,
        repeats: Int,
        culprit: Culprit? = nil,
        missingCulpritReason: String? = nil,
        cause: Cause? = nil,
        samples: [Sample],
        otherThreads: [OtherThread]? = nil,
        omittedThreads: Int? = nil,
        stacks: [[Int]],
        frames: [Frame],
        images: [Image],
        monitor: MonitorDescription
    ) {
        self.schemaVersion = schemaVersion
        self.id = id
        self.kind = kind
        self.state = state
        self.startedAt = startedAt
        self.durationMilliseconds = durationMilliseconds
        self.thresholdMilliseconds = thresholdMilliseconds
        self.process = process
        self.metadata = metadata
        self.loop = loop
        self.startUncertaintyMilliseconds = startUncertaintyMilliseconds
        self.turns = turns
        self.callout = callout
        self.fingerprint = fingerprint
        self.repeats = repeats
        self.culprit = culprit
        self.missingCulpritReason = missingCulpritReason
        self.cause = cause
        self.samples = samples
        self.otherThreads = otherThreads
        self.omittedThreads = omittedThreads
        self.stacks = stacks
        self.frames = frames
        self.images = images
        self.monitor = monitor
    }

    /// A loop and one of its turns.
    public struct LoopDescription: Codable, Sendable, Equatable {
        /// The name that the loop was given.
        public var label: String
        /// What kind of loop it is.
        public var kind: LoopKind
        /// The mode that the loop ran in, if it is one that was named.
        public var mode: String?
        /// The turn's number; the first one that was seen is 1.
        public var turn: UInt64
        /// Runs of the loop inside a callout of the same loop; 0 is the outermost.
        public var nesting: Int
        /// The thread that runs it; `nil` for a pool.
        public var thread: ThreadDescription?

        package init(
            label: String,
            kind: LoopKind,
            mode: String? = nil,
            turn: UInt64,
            nesting: Int,
            thread: ThreadDescription? = nil
        ) {
            self.label = label
            self.kind = kind
            self.mode = mode
            self.turn = turn
            self.nesting = nesting
            self.thread = thread
        }
    }

    /// A thread.
    public struct ThreadDescription: Codable, Sendable, Equatable {
        /// Its kernel id.
        public var id: Int32
        /// Its name, 15 bytes at most.
        public var name: String?

        package init(
            id: Int32,
            name: String? = nil
        ) {
            self.id = id
            self.name = name
        }
    }

    /// The function that a developer should look at first.
    public struct Culprit: Codable, Sendable, Equatable {
        /// Its name as it was written.
        public var function: String
        /// The name of the image that it is in.
        public var image: String?
        /// The source file as the compiler recorded it.
        public var file: String?
        /// The line in it, from 1.
        public var line: Int?

        package init(
            function: String,
            image: String? = nil,
            file: String? = nil,
            line: Int? = nil
        ) {
            self.function = function
            self.image = image
            self.file = file
            self.line = line
        }
    }

    /// The monitor that wrote a report.
    public struct MonitorDescription: Codable, Sendable, Equatable {
        /// StallWatch's version.
        public var version: String
        /// How late the watchdog was itself when it saw the stall.
        public var watchdogLateMilliseconds: Double
        /// The ways in which threads can be captured here: `signal` instead of `stop` says that ptrace(2) is refused.
        public var captureMethods: [CaptureMethod]?
        /// How often something over the threshold was not reported, by reason, since the monitor was started.
        public var suppressed: SuppressionCounts

        package init(
            version: String,
            watchdogLateMilliseconds: Double,
            captureMethods: [CaptureMethod]? = nil,
            suppressed: SuppressionCounts
        ) {
            self.version = version
            self.watchdogLateMilliseconds = watchdogLateMilliseconds
            self.captureMethods = captureMethods
            self.suppressed = suppressed
        }
    }
}

extension StallReport {
    /// One sentence: what stalled, how long, and where.
    public var summary: String {
        var text = "\(loop.label) stalled"
        text += state == .ended ? " for " : " and has not come back after "
        text += "\(Int(durationMilliseconds.rounded())) ms"
        if let culprit { text += " in \(culprit.function)" }
        if let callout { text += " (\(callout.rawValue))" }
        return text
    }

    /// The name of the report's file in the report directory.
    ///
    /// Names sort by the time at which the stall began.
    public var fileName: String {
        let time = startedAt.description.filter { $0 != "-" && $0 != ":" }
        return "stall-\(time)-\(id.suffix(12)).json"
    }

    /// Whether a file of that name is a report's, by its form.
    package static func isFileName(_ name: String) -> Bool {
        name.hasPrefix("stall-") && name.hasSuffix(".json")
    }
}
