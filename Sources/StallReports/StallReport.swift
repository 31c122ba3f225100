/// A report about one stall, stored as one JSON file.
///
/// The name of each duration ends with its unit. Addresses and offsets are hexadecimal strings. Times are UTC. Stacks,
/// frames and images are stored once and referred to by index. A field is `nil`, and absent from the JSON, if its value
/// is unknown.
///
/// `Schemas/stall-report.schema.json` describes the JSON for other programs. Later releases may add fields and words
/// within one `schemaVersion`: readers must ignore unknown fields and accept unknown words. Removing a field, or
/// changing its meaning, starts a new version, which older readers refuse.
public struct StallReport: Codable, Sendable, Equatable, Identifiable {
    /// The schema version that is written: it increases when a field is removed or changes its meaning.
    package static let currentSchemaVersion = 1

    package var schemaVersion: Int = Self.currentSchemaVersion
    /// The report's id: a UUID of version 7, so that ids sort by time.
    public var id: String
    /// The kind of delay: stall, saturation, starvation, spinning, modeStarvation, notRun, overdue or pinned.
    public var kind: StallKind
    /// The state of the stall when the monitor last wrote the report.
    public var state: StallState
    /// The time at which the stalled turn began.
    public var startedAt: Timestamp
    /// The duration of the stall, in milliseconds.
    ///
    /// For a stall that has not ended, the duration so far when the monitor last wrote the report.
    public var durationMilliseconds: Double
    /// The threshold that the stall exceeded, in milliseconds.
    public var thresholdMilliseconds: Double
    /// The process that stalled.
    public var process: ProcessDescription
    /// The metadata from the monitor's configuration.
    public var metadata: [String: String]
    /// The loop that stalled, and the turn.
    public var loop: LoopDescription
    /// The time by which the stall may have begun earlier, in milliseconds.
    ///
    /// Present only for loops watched by heartbeat, and after a loop ran in a mode that is not watched.
    package var startUncertaintyMilliseconds: Double?
    /// The number of turns without a wait; not of a stall, a starvation and an overdue operation.
    package var turns: UInt64?
    /// How the loop used its time; not of a stall, a starvation and an overdue operation.
    package var activity: Activity?
    /// The pool of the thread that one task kept; `nil` for other kinds than `pinned`.
    package var pool: Pool?
    package var callout: Callout?
    /// The fingerprint: stalls with the same one are repeats of each other.
    ///
    /// 16 hexadecimal digits, computed from the names of the app's functions on the stack. `nil` until the report is
    /// symbolicated.
    public var fingerprint: String?
    /// The number of stalls with the same fingerprint that this report stands for beside its own.
    ///
    /// The monitor suppressed them since it last reported one. 0 while the stall lasts.
    public var repeats: Int = 0
    /// The durations of the stalls that ``repeats`` counts; `nil` if it counts none, or in reports of older versions.
    package var repeated: RepeatedStalls?
    /// The function that a developer should inspect first.
    public var culprit: Culprit?
    /// Why there is no culprit; `nil` when there is one, or the functions' names have not been looked up yet.
    package var missingCulpritReason: String?
    /// What the thread was working on for most of the stall; `nil` if that is not known, or nothing.
    public var context: Context?
    /// Why ``context`` has no task, or is missing; `nil` if it is complete, or there is none.
    package var missingContextReason: String?
    /// Why it took so long; `nil` where no single thread runs the loop, or the thread could not be read.
    public var cause: Cause?
    /// The stacks that the monitor captured during the stall, oldest first.
    public var samples: [Sample]
    /// Why there is no sample, and nothing else of the turn than its times; `nil` if there is one.
    package var missingSamplesReason: String?
    /// The other threads of the process, captured right after the first sample.
    ///
    /// Present only if the configuration enables it, if the monitor found a deadlock, or for an overdue operation.
    public var otherThreads: [OtherThread]?
    /// The number of threads that ``otherThreads`` omits because there are too many; `nil` if it omits none.
    package var omittedThreads: Int?
    /// What an overdue operation waits for: its own task first, then what that waits for, to the end of the chain.
    ///
    /// `nil` for other kinds, and if it is not known.
    public var waits: [Wait]?
    /// The Swift tasks in the dump of a hang, with their waits; `nil` in other reports.
    package var tasks: TaskList?
    /// What waited for the loop during a stall; `nil` for other kinds, and if nothing was asked.
    package var victims: Victims?
    /// What the watched loops did in the seconds before; `nil` in a dump of a hang.
    package var history: History?
    /// The stacks, each an array of indices into ``frames``, innermost frame first.
    public var stacks: [[Int]]
    /// The frames of all stacks, each stored once.
    public var frames: [Frame]
    /// The images of all frames, each stored once.
    public var images: [Image]
    package var monitor: MonitorDescription

    package init(
        id: String, kind: StallKind, state: StallState, startedAt: Timestamp, durationMilliseconds: Double,
        thresholdMilliseconds: Double, process: ProcessDescription, metadata: [String: String], loop: LoopDescription,
        samples: [Sample], stacks: [[Int]], frames: [Frame], images: [Image], monitor: MonitorDescription
    ) {
        (self.id, self.kind, self.state, self.startedAt) = (id, kind, state, startedAt)
        (self.durationMilliseconds, self.thresholdMilliseconds) = (durationMilliseconds, thresholdMilliseconds)
        (self.process, self.metadata, self.loop, self.samples) = (process, metadata, loop, samples)
        (self.stacks, self.frames, self.images, self.monitor) = (stacks, frames, images, monitor)
    }

    /// The durations of stalls that were counted and have no report of their own.
    package struct RepeatedStalls: Codable, Sendable, Equatable {
        package var totalMilliseconds: Double
        package var leastMilliseconds: Double
        package var greatestMilliseconds: Double

        package init(totalMilliseconds: Double, leastMilliseconds: Double, greatestMilliseconds: Double) {
            (self.totalMilliseconds, self.leastMilliseconds) = (totalMilliseconds, leastMilliseconds)
            self.greatestMilliseconds = greatestMilliseconds
        }
    }

    /// A monitored loop and one of its turns.
    public struct LoopDescription: Codable, Sendable, Equatable {
        /// The label under which the app registered the loop.
        public var label: String
        package var kind: LoopKind
        /// The run loop mode of the turn; `nil` if the app did not name that mode, or if the loop has none.
        package var mode: String?
        /// The priorities whose new tasks waited, those of one at least to the end; `nil` for loops other than the
        /// task pool.
        package var priorities: [String]?
        /// The number of the turn; the first turn that the monitor saw is 1.
        public var turn: UInt64
        /// The nesting depth: how many callouts of the same loop this run is inside; 0 for the outermost run.
        package var nesting: Int
        /// The thread that runs the loop; `nil` for a pool.
        public var thread: ThreadDescription?

        package init(label: String, kind: LoopKind, turn: UInt64, nesting: Int, thread: ThreadDescription? = nil) {
            (self.label, self.kind, self.turn, self.nesting, self.thread) = (label, kind, turn, nesting, thread)
        }
    }

    /// A thread's id and name.
    public struct ThreadDescription: Codable, Sendable, Equatable {
        /// The thread's kernel id, as from gettid(2).
        public var id: Int32
        /// The thread's name, at most 15 bytes; `nil` if unknown.
        public var name: String?
        /// What the thread was working on when it was captured, for threads other than a loop's; `nil` if unknown.
        public var context: Context?
    }

    /// The function that a developer should inspect first.
    public struct Culprit: Codable, Sendable, Equatable {
        /// The function's demangled name.
        public var function: String
        package var image: String?
        /// The path of the source file, as the compiler recorded it.
        public var file: String?
        /// The line in ``file``, from 1.
        public var line: Int?
        /// The share of the stall's duration in which the function or a closure of it was the culprit, 0 to 1; `nil` if unknown.
        public var share: Double?
        /// `true`: it returns a value to its caller; `nil`: it does not, or that is not known.
        package var returnsValue: Bool?
    }

    package struct MonitorDescription: Codable, Sendable, Equatable {
        package var version: String = StallWatchVersion.current
        /// The watchdog's own delay when it detected the stall, in milliseconds.
        package var watchdogLateMilliseconds: Double
        /// The capture methods that the system permits: `signal` instead of `ptrace` means that it refuses ptrace(2).
        package var captureMethods: [CaptureMethod]?
        /// Who unwound the stacks: `libunwind` with its version, or `built-in`.
        package var unwinder: String?
        /// The number of suppressions since the monitor started, by reason.
        package var suppressed: SuppressionCounts

        package init(
            watchdogLateMilliseconds: Double,
            captureMethods: [CaptureMethod]? = nil,
            unwinder: String? = nil,
            suppressed: SuppressionCounts
        ) {
            (self.watchdogLateMilliseconds, self.captureMethods) = (watchdogLateMilliseconds, captureMethods)
            (self.unwinder, self.suppressed) = (unwinder, suppressed)
        }
    }
}

extension StallReport.Culprit {
    package init(function: String, image: String?, file: String?, line: Int?, returnsValue: Bool? = nil) {
        (self.function, self.image, self.file, self.line) = (function, image, file, line)
        self.returnsValue = returnsValue
    }

    /// The share in words, such as "71 %"; `nil` if it is unknown or nearly all of the stall.
    package var shareInWords: String? { share.flatMap { $0 < 0.995 ? $0.percent : nil } }
}

extension StallReport {
    /// What stalled, for how long and where; then, on lines that begin with "why" and "try", the cause's sentence and what
    /// to do about it.
    ///
    /// The lines are separated by a line feed, and are left out if nothing is known for them.
    public var summary: String {
        let place = culprit.flatMap { culprit in culprit.file.map { " at \(sourcePlace($0, culprit.line))" } }
        let reason = why ?? noSample
        let lines = [
            title + blame(place: place ?? "") + poolInWords, reason.map { "  why  \($0)" },
            advice.map { "  try  \($0.text)" },
        ]
        return lines.compactMap { $0?.withoutControls }.joined(separator: "\n")
    }

    /// One sentence that says why it took so long, or how a loop used its time; `nil` if neither is known.
    package var why: String? {
        let end = hasNoMainThread ? ": its thread has ended (as with an async main, or dispatchMain())" : ""
        return cause?.summary ?? activity.map { "\($0.sentence(in: loop.mode))\(end)." }
    }

    /// One sentence that says why there is no sample; `nil` if no reason is recorded.
    package var noSample: String? { missingSamplesReason.map { "No sample: \($0)." } }

    /// One sentence that names the loop, the duration, the culprit and the function that held it up.
    package var headline: String { (title + blame() + poolInWords).withoutControls }

    /// The words of the headline before the culprit.
    package var title: String {
        "\(pool?.subject(loop.label) ?? loop.label) \(verb) \(leastInWords)\(durationMilliseconds.whole) ms"
    }

    /// The words of a title after the duration: ` in save() (timer), held up by writeWAL() (WAL.swift:7)`.
    ///
    /// `code` formats a function's name, and `place` follows the culprit.
    package func blame(place: String = "", code: (String) -> String = { $0 }) -> String {
        var text = ""
        if let culprit {
            // A function that had no CPU, or no thread of a pool, is not to blame.
            // A few looks do not tell 92 from 99 %.
            let part = culprit.shareInWords.map { culprit.share ?? 0 >= 0.9 ? "most" : $0 }
            var lead = (part.map { ", \($0) of it" } ?? "") + " in"
            if kind == .starvation { lead = ": \(threadsInCulprit) in" }
            if kind == .notRun { lead = ": its thread was in" }
            if lacksCPU { lead = " without a CPU, while it was in" }
            text = "\(lead) \(code(culprit.function))\(place)"
        }
        if let callout { text += " (\(callout.inWords))" }
        return text + (heldUpBy.map { ", held up by \(code($0))" } ?? "")
    }

    /// How many of a pool's threads were in the culprit's function, with the verb.
    private var threadsInCulprit: String {
        let counts = samples.map { sample in
            (sample.workers ?? []).reduce(into: (inside: 0, all: 0)) { counts, group in
                let frames = group.stack.map { provenFrames(ofStack: $0) } ?? []
                counts.all += group.threads.count
                if frames.contains(where: { $0.function == culprit?.function }) { counts.inside += group.threads.count }
            }
        }
        // Of a task executor, one thread is captured; a report without its stacks has no count.
        guard loop.kind != .taskExecutor, let (inside, all) = counts.last(where: { $0.inside > 0 }), all > 1 else {
            return "one of its threads was"
        }
        if inside == all { return "its threads were" }
        return "\(inside) of its \(all) threads \(inside == 1 ? "was" : "were")"
    }

    /// Whether the turn would have been below the threshold with a CPU, as far as that is likely.
    package var lacksCPU: Bool {
        guard let cause, cause.confidence != .possible else { return false }
        return [.cpuContention, .throttled].contains(cause.kind)
            && cause.onCPUMilliseconds + cause.blockedMilliseconds < thresholdMilliseconds
    }

    /// The place that held the lock, if its owner is to blame for the wait: the app's function at the end of the chain.
    package var heldUpBy: String? {
        guard let cause, cause.kind == .lock, cause.confidence != .possible, cause.describesMost,
            let owners = cause.lock?.owners, let owner = owners.last, owner.waitsFor == nil
        else { return nil }
        return place(ofOwner: owners.count - 1)
    }

    /// The word of the cause; of a loop that was saturated, spun, let a mode wait or was not run, that of its kind.
    package var causeWord: String { Self.causeWord(cause?.kind, kind) }

    package static func causeWord(_ cause: CauseKind?, _ kind: StallKind) -> String {
        cause?.rawValue ?? wordsWithoutCause[kind] ?? CauseKind.unknown.rawValue
    }

    private static let wordsWithoutCause: [StallKind: String] = [
        .saturation: "saturated", .spinning: "spinning", .modeStarvation: "mode", .notRun: "notRun",
    ]

    package static let causeWords = CauseKind.known.map(\.rawValue) + wordsWithoutCause.values.sorted()

    /// "at least " before a duration that may have begun earlier by a tenth of it or more; else nothing.
    package var leastInWords: String {
        let earlier = startUncertaintyMilliseconds ?? 0
        return earlier > 0 && earlier * 10 >= durationMilliseconds ? "at least " : ""
    }

    /// The name of the report's file: names sort by the time at which the stall began.
    package var fileName: String {
        let time = startedAt.description.filter { $0 != "-" && $0 != ":" }
        return "stall-\(time)-\(id.suffix(12)).json"
    }

    /// The temporary file name for the report of a suppressed repeat.
    ///
    /// The next such stall adds its ``repeats`` and removes it; a monitor that stops renames it to ``fileName``.
    package var newestFileName: String { fileName.dropLast(".json".utf8.count) + Self.newestSuffix }

    /// How the names of such files end.
    package static let newestSuffix = ".newest.json"

    /// Whether a file is a report's by its name: other programs' files may be next to it, and a baseline.
    package static func isFileName(_ name: String) -> Bool {
        name.hasPrefix("stall-") && name.hasSuffix(".json") && name != StallBaseline.fileName
    }

    /// The process that stalled.
    ///
    /// Contains neither its arguments nor its environment.
    public struct ProcessDescription: Codable, Sendable, Hashable {
        /// The executable's file name.
        public var name: String
        /// The process id.
        public var pid: Int32
        /// The time at which the process started, precise to 1/100 s; `nil` if unknown.
        package var startedAt: Timestamp?
        /// The start time in clock ticks since the boot (field 22 of /proc/<pid>/stat), whatever the wall clock; `nil`
        /// if unknown.
        package var startTicks: UInt64?
        /// The executable's path; empty if unknown.
        public var executable: String
        package var architecture: String
        /// The Linux distribution, such as `Debian GNU/Linux 12 (bookworm)`; `nil` if unknown.
        public var operatingSystem: String?
        /// The kernel's release, as from `uname -r`.
        public var kernel: String
        /// The host's name.
        public var hostname: String
        /// The kernel's id of the boot: with ``pid`` and ``startTicks`` it identifies the process; `nil` if unknown.
        package var bootID: String?
        /// The PID namespace of ``pid``, each container's own, as in `pid:[4026531836]`; `nil` if unknown.
        package var pidNamespace: String?

        package init(
            name: String, pid: Int32, executable: String, architecture: String, kernel: String, hostname: String
        ) {
            (self.name, self.pid, self.executable, self.architecture) = (name, pid, executable, architecture)
            (self.kernel, self.hostname) = (kernel, hostname)
        }
    }
}
