import Foundation
import StallWatch

/// The required contents of a scenario's report, apart from its duration; a field that is `nil` is not judged, because
/// it does not apply or is random.
struct ExpectedReport: Encodable, Equatable, Sendable {
    var kind = StallKind.stall
    var loop = "main"
    var loopKind: StallReport.LoopKind? = .runLoop
    /// The nesting depth: runs of the loop inside its own callouts.
    var nesting = 0
    var mode: String?
    var callout: StallReport.Callout?
    var function: String?
    var cause: String?
    /// The name of the thread that owns the awaited lock; `nil` if there must be none.
    var owner: String?
    /// The owner's activity: `running`, or the name of its system call.
    var ownerDoes: String?
    var lock: StallReport.LockKind?
    /// A part of the blocking system call with its target, such as `connect(127.0.0.1:`.
    var call: String?
    /// The stall's CPU time, as a multiple of the threshold.
    var onCPU: Double?
    /// What the first process has to do with the call that waits for it.
    var peer: StallReport.PeerRole?
    /// The name of the system call that this process waits in.
    var peerDoes: String?
    /// What the last link of an operation's chain waits for.
    var ends: StallReport.WaitKind?
    /// The app's function of the last link.
    var holder: String?
    /// The label of a loop that must have a stall, too.
    var besides: String?
    /// The id of the rule that says what to do, or ``noAdvice``.
    var advice: String?
    /// What waited for the loop; `nil` if that is not judged.
    var victims: Victims?
    /// The labels of the other loops that were in a turn for most of the stall; `nil` if that is not judged.
    var meanwhile: [String]?
    /// The number of reports; all of them must have these contents.
    var count = 1
    /// Functions for each report, in any order: the culprit, and functions that its stack has from there outwards.
    var stacks: [[String]] = []
    /// Whether the samples must show different stacks, as many small pieces of work do.
    var differingSamples = false
}

extension ExpectedReport {
    /// What waited for the loop during a stall.
    struct Victims: Encodable, Equatable, Sendable {
        var timers = 0
        /// `nil` for a loop that does not serve the main queue.
        var items: Int? = 0
        /// When the first of the timers was due, as a part of the threshold after the beginning of the turn.
        var due = 0.0
        /// The interval of that timer, as a part of the threshold; 0 if it does not repeat.
        var every = 0.0
        var operations = 0
        /// The least time of the turns right after the stall, in milliseconds; for 0 there are none but short ones.
        var later = 0.0
    }

    /// The same stall, for which timers, items of the main queue, operations and later turns waited.
    func delaying(
        timers: Int = 0, due: Double = 0, every: Double = 0, items: Int? = 0, operations: Int = 0, later: Double = 0
    ) -> Self {
        var expected = self
        expected.victims = Victims(
            timers: timers, items: items, due: due, every: every, operations: operations, later: later)
        return expected
    }

    /// The same stall, during which the other loops with these labels were in a turn.
    func besideTurns(of labels: [String]) -> Self {
        var expected = self
        expected.meanwhile = labels
        return expected
    }

    /// The same stall, which waits for a process, with the system call that this process waits in.
    func waiting(for peer: StallReport.PeerRole, in call: String? = nil) -> Self {
        var expected = self
        (expected.peer, expected.peerDoes) = (peer, call)
        return expected
    }

    static let noAdvice = "none"

    static let defaultMode = "kCFRunLoopDefaultMode"

    /// A stall of the main run loop, in its default mode.
    static func main(
        _ callout: StallReport.Callout?, in function: String?, nesting: Int = 0, cause: String? = nil,
        call: String? = nil, onCPU: Double? = nil
    ) -> Self {
        Self(
            nesting: nesting, mode: defaultMode, callout: callout, function: function, cause: cause, call: call,
            onCPU: onCPU
        )
    }

    /// A stall of the main run loop that waits for a lock, with or without an owner.
    static func main(
        _ callout: StallReport.Callout?, in function: String?, cause: String = "lock", lock: StallReport.LockKind,
        owner: String? = nil, ownerDoes: String? = nil
    ) -> Self {
        Self(
            mode: defaultMode, callout: callout, function: function, cause: cause, owner: owner, ownerDoes: ownerDoes,
            lock: lock
        )
    }

    static func runLoop(
        _ label: String, _ callout: StallReport.Callout?, in function: String?, mode: String? = defaultMode
    ) -> Self {
        Self(loop: label, mode: mode, callout: callout, function: function)
    }

    static func heartbeat(
        _ label: String, _ loopKind: StallReport.LoopKind, in function: String?, kind: StallKind = .stall
    ) -> Self {
        Self(kind: kind, loop: label, loopKind: loopKind, function: function)
    }

    static func operation(
        _ label: String, in function: String?, cause: String, ends: StallReport.WaitKind, holder: String?,
        besides: String? = nil
    ) -> Self {
        var expected = Self(kind: .overdue, loop: label, loopKind: .operation, function: function, cause: cause)
        (expected.ends, expected.holder, expected.besides) = (ends, holder, besides)
        return expected
    }

    static func probe(_ label: String, in function: String?) -> Self {
        Self(loop: label, loopKind: .probe, function: function)
    }
}

/// A function's places in a source file, Swift's or C's.
enum SourceFunction {
    /// Whether `line` of the file at `path` lies in a function whose name is `function`'s, as reports write it.
    static func contains(_ line: Int, of function: String, in path: String) -> Bool {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return false }
        let name = baseName(of: function)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.indices.contains { first in
            guard declares(name, lines[first]) else { return false }
            let end = String(lines[first].prefix { $0 == " " }) + "}"
            let last = lines[first...].firstIndex { $0 == end } ?? first
            return (first + 1...last + 1).contains(line)
        }
    }

    /// `acquire` for `PthreadLock.acquire(within:)`.
    private static func baseName(of function: String) -> Substring {
        let path = function.prefix { $0 != "(" && $0 != "<" }
        return path.split(separator: " ").last?.split(separator: ".").last ?? path
    }

    /// Whether the line begins a declaration: in C, one that is not indented and does not end there.
    private static func declares(_ name: Substring, _ line: Substring) -> Bool {
        if line.contains("func \(name)(") || line.contains("func \(name)<") { return true }
        guard let first = line.first, first.isLetter, !line.hasSuffix(";") else { return false }
        return line.contains(" \(name)(") || line.contains("*\(name)(")
    }
}

/// The parts of a report that are judged.
struct ReportedStall: Equatable, Sendable {
    var file: String
    var kind = StallKind.stall
    var loop: String
    var loopKind = StallReport.LoopKind.runLoop
    var nesting = 0
    var mode: String?
    var callout: StallReport.Callout?
    var milliseconds: Double
    /// By how much the stall may have begun earlier; not zero for a loop with a heartbeat.
    var startUncertainty = 0.0
    var function: String?
    var sourceFile: String?
    var line: Int?
    var cause: String?
    var owner: String?
    /// The owner's activity: `running`, ``inverted``, or the name of its system call.
    var ownerDoes: String?
    var lock: StallReport.LockKind?
    var call: String?
    /// What the first process has to do with the call that waits for it.
    var peer: StallReport.PeerRole?
    var peerProcess: Int32?
    /// The name of the system call that this process waits in.
    var peerDoes: String?
    /// What the last link of an operation's chain waits for; `pool` if threads of the pool follow.
    var ends: StallReport.WaitKind?
    /// The app's function of the last link.
    var holder: String?
    /// The id of the rule that says what to do; `none` if the report does not say it.
    var advice = ExpectedReport.noAdvice
    /// How many timers and items of the main queue waited, if that is known, and how long the first timer.
    var timers: Int?
    var items: Int?
    var timerDelay: Double?
    /// For how long timers and items waited within the stall, in all.
    var wait = 0.0
    /// How often repeating timers did not fire.
    var skippedFirings = 0
    /// The labels of the other loops that were in a turn for most of the stall.
    var meanwhile: [String] = []
    var operations = 0
    /// How long the turns right after the stall took, in milliseconds.
    var later = 0.0
    /// The parts of the stall's time, if the report has a cause.
    var split: Split?
    var functions: [String] = []
    var distinctStacks = 1
    var samples = 1
    /// The number of those of the same turn whose stacks do not reach the thread's first function, or are missing.
    var incompleteSamples = 0

    /// The parts of a stall's time, in milliseconds.
    struct Split: Equatable, Sendable {
        var onCPU, runQueue, blocked, uncertainty: Double
    }
}

extension ReportedStall {
    /// The activity of an owner that gets no CPU because it has a lower priority.
    static let inverted = "priority inversion"

    init(_ report: StallReport, file: String) {
        let peer = report.cause?.callsWithPeers.first?.peers?.first
        let culprit = report.culprit.map { Self.general($0.function) }
        self.init(
            file: file, kind: report.kind, loop: report.loop.label, loopKind: report.loop.kind,
            nesting: report.loop.nesting, mode: report.loop.mode, callout: report.callout,
            milliseconds: report.durationMilliseconds, startUncertainty: report.startUncertaintyMilliseconds ?? 0,
            function: culprit, sourceFile: report.culprit?.file, line: report.culprit?.line,
            cause: report.cause?.kind.rawValue,
            owner: report.cause?.lock?.owners.first?.thread.name,
            ownerDoes: report.cause?.lock?.owners.first.flatMap { owner in
                if owner.priorityInversion != nil { return Self.inverted }
                return owner.isRunning ? "running" : owner.systemCall?.name
            },
            lock: report.cause?.lock?.kind,
            call: (report.cause?.systemCall).map { $0.name + "(" + ($0.target ?? "") + ")" },
            peer: peer?.role, peerProcess: peer?.pid, peerDoes: peer?.systemCall,
            ends: report.waits?.first { $0.kind == .pool }?.kind ?? report.waits?.last?.kind,
            holder: report.waits?.last?.function,
            advice: report.advice?.rule ?? ExpectedReport.noAdvice, split: report.cause.map(Split.init),
            distinctStacks: Set(report.samples.compactMap(\.stack)).count, samples: report.samples.count,
            incompleteSamples: report.samples.count { $0.isValid && !$0.isComplete }
        )
        timers = report.victims?.timers
        items = report.victims?.mainQueueItems
        timerDelay = report.victims?.longestTimerDelayMilliseconds
        wait = report.victims?.totalWaitMilliseconds ?? 0
        skippedFirings = report.victims?.skippedFirings ?? 0
        meanwhile = (report.history?.loops ?? []).filter { loop in
            loop.label != report.loop.label
                && loop.turns.contains { turn in
                    let end = min(turn.atMilliseconds + turn.durationMilliseconds, report.durationMilliseconds)
                    return end - max(turn.atMilliseconds, 0) > report.durationMilliseconds / 2
                }
        }.map(\.label)
        operations = report.victims?.operations ?? 0
        later = report.victims?.laterTurnsMilliseconds ?? 0
        functions =
            report.samples.first { $0.isValid && $0.stack != nil }
            .map { report.functionNames(of: $0).map(Self.general) } ?? []
    }

    /// An optimized build may run a copy of a function for its callers' constants, which is the same function.
    private static func general(_ function: String) -> String {
        function.replacing("specialized ", with: "", maxReplacements: 1)
    }

    /// Whether the culprit is the first of these functions, and the stack has the others from there outwards.
    func hasStack(of wanted: [String]) -> Bool {
        var left = wanted[...]
        for name in functions where name == left.first { left.removeFirst() }
        return left.isEmpty && function == wanted.first
    }
}

extension ReportedStall {
    static func read(_ name: String, in directory: String) throws(ScenariosFailure) -> ReportedStall {
        let file = directory + (directory.hasSuffix("/") ? "" : "/") + name
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ScenariosFailure(
                .inputOutput, "the report \(file) cannot be read: leave the files alone while the program runs"
            )
        }
        do throws(StallWatchError) {
            return ReportedStall(try StallReport(jsonData: [UInt8](data)), file: file)
        } catch {
            throw ScenariosFailure(.inputOutput, "the report \(file) is damaged: \(error)")
        }
    }
}

extension ReportedStall.Split {
    init(_ cause: StallReport.Cause) {
        self.init(
            onCPU: cause.onCPUMilliseconds, runQueue: cause.runQueueMilliseconds, blocked: cause.blockedMilliseconds,
            uncertainty: cause.uncertaintyMilliseconds
        )
    }
}
