import Foundation
package import StallWatch

/// The required contents of a scenario's report, apart from its duration.
///
/// A field that is `nil` is not judged, because it does not apply or is random.
package struct ExpectedReport: Equatable, Sendable {
    package var kind = StallKind.stall
    /// The label of the stalled loop.
    package var loop = "main"
    package var loopKind: StallReport.LoopKind? = .runLoop
    /// The nesting depth: runs of the loop inside its own callouts.
    package var nesting = 0
    package var mode: String?
    package var callout: StallReport.Callout?
    /// The demangled name of the culprit.
    package var function: String?
    /// The kind of the cause.
    package var cause: String?
    /// The name of the thread that owns the awaited lock; `nil` if there must be none.
    package var owner: String?
    /// The owner's activity: `running`, or the name of its system call.
    package var ownerDoes: String?
    /// The kind of the awaited lock.
    package var lock: StallReport.LockKind?
    /// A part of the blocking system call with its target, such as `connect(127.0.0.1:`.
    package var call: String?
    /// The stall's CPU time, as a multiple of the threshold.
    package var onCPU: Double?
    /// What the first process has to do with the call that waits for it.
    package var peer: StallReport.PeerRole?
    /// The name of the system call that this process waits in.
    package var peerDoes: String?
    /// What the last link of an operation's chain waits for.
    package var ends: StallReport.WaitKind?
    /// The app's function of the last link.
    package var holder: String?
    /// The label of a loop that must have a stall, too.
    package var besides: String?
    /// The id of the rule that says what to do, or ``noAdvice``.
    package var advice: String?
    /// The number of reports.
    ///
    /// All of them must have these contents.
    package var count = 1
    /// Functions for each report, in any order: the culprit, and functions that its stack has from there outwards.
    package var stacks: [[String]] = []
    /// Whether the samples must show different stacks, as many small pieces of work do.
    package var differingSamples = false
    /// Whether stacks may be incomplete, because the system's own code cannot be unwound there.
    package var mayBeIncomplete = false

    package init(
        kind: StallKind = .stall, loop: String = "main", loopKind: StallReport.LoopKind? = .runLoop,
        nesting: Int = 0, mode: String? = nil, callout: StallReport.Callout? = nil, function: String? = nil,
        cause: String? = nil, owner: String? = nil, ownerDoes: String? = nil, lock: StallReport.LockKind? = nil,
        call: String? = nil, onCPU: Double? = nil, count: Int = 1, stacks: [[String]] = [],
        differingSamples: Bool = false
    ) {
        self.kind = kind
        self.loop = loop
        self.loopKind = loopKind
        self.nesting = nesting
        self.mode = mode
        self.callout = callout
        self.function = function
        self.cause = cause
        self.owner = owner
        self.ownerDoes = ownerDoes
        self.lock = lock
        self.call = call
        self.onCPU = onCPU
        self.count = max(count, stacks.count)
        self.stacks = stacks
        self.differingSamples = differingSamples
    }
}

extension ExpectedReport {
    /// The same stall, which waits for a process, with the system call that this process waits in.
    package func waiting(for peer: StallReport.PeerRole, in call: String? = nil) -> Self {
        var expected = self
        (expected.peer, expected.peerDoes) = (peer, call)
        return expected
    }

    /// The same stall, whose stacks may be incomplete.
    package func perhapsIncomplete() -> Self {
        var expected = self
        expected.mayBeIncomplete = true
        return expected
    }

    /// The report must not say what to do.
    package static let noAdvice = "none"

    package static let defaultMode = "kCFRunLoopDefaultMode"

    /// A stall of the main run loop, in its default mode.
    package static func main(
        _ callout: StallReport.Callout?, in function: String?, nesting: Int = 0, cause: String? = nil,
        call: String? = nil, onCPU: Double? = nil
    ) -> Self {
        Self(
            nesting: nesting, mode: defaultMode, callout: callout, function: function, cause: cause, call: call,
            onCPU: onCPU
        )
    }

    /// A stall of the main run loop that waits for a lock, with or without an owner.
    package static func main(
        _ callout: StallReport.Callout?, in function: String?, cause: String = "lock", lock: StallReport.LockKind,
        owner: String? = nil, ownerDoes: String? = nil
    ) -> Self {
        Self(
            mode: defaultMode, callout: callout, function: function, cause: cause, owner: owner, ownerDoes: ownerDoes,
            lock: lock
        )
    }

    /// A stall of a thread's own run loop.
    package static func runLoop(
        _ label: String, _ callout: StallReport.Callout?, in function: String?, mode: String? = defaultMode
    ) -> Self {
        Self(loop: label, mode: mode, callout: callout, function: function)
    }

    /// A stall or a starvation of a loop with a heartbeat.
    package static func heartbeat(
        _ label: String, _ loopKind: StallReport.LoopKind, in function: String?, kind: StallKind = .stall
    ) -> Self {
        Self(kind: kind, loop: label, loopKind: loopKind, function: function)
    }

    /// An operation over its limit.
    package static func operation(
        _ label: String, in function: String?, cause: String, ends: StallReport.WaitKind, holder: String?,
        besides: String? = nil
    ) -> Self {
        var expected = Self(kind: .overdue, loop: label, loopKind: .operation, function: function, cause: cause)
        (expected.ends, expected.holder, expected.besides) = (ends, holder, besides)
        return expected
    }

    /// A stall of a loop with a probe.
    package static func probe(_ label: String, in function: String?) -> Self {
        Self(loop: label, loopKind: .probe, function: function)
    }
}

/// A function's places in a source file, Swift's or C's.
package enum SourceFunction {
    /// Whether `line` of the file at `path` lies in a function whose name is `function`'s, as reports write it.
    package static func contains(_ line: Int, of function: String, in path: String) -> Bool {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return false }
        return contains(line, of: function, inText: text)
    }

    package static func contains(_ line: Int, of function: String, inText text: String) -> Bool {
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
package struct ReportedStall: Equatable, Sendable {
    /// The report's file.
    package var file: String
    package var kind = StallKind.stall
    /// The loop's label.
    package var loop: String
    package var loopKind = StallReport.LoopKind.runLoop
    package var nesting = 0
    package var mode: String?
    package var callout: StallReport.Callout?
    package var milliseconds: Double
    /// By how much the stall may have begun earlier.
    ///
    /// Not zero for a loop with a heartbeat.
    package var startUncertainty = 0.0
    /// The culprit.
    package var function: String?
    /// The source file of the culprit.
    package var sourceFile: String?
    /// The line of the culprit in ``sourceFile``.
    package var line: Int?
    /// The kind of the cause.
    package var cause: String?
    /// The name of the thread that holds the awaited lock.
    package var owner: String?
    /// The owner's activity: `running`, ``inverted``, or the name of its system call.
    package var ownerDoes: String?
    /// The kind of the awaited lock.
    package var lock: StallReport.LockKind?
    /// The blocking system call with its target.
    package var call: String?
    /// What the first process has to do with the call that waits for it.
    package var peer: StallReport.PeerRole?
    /// The id of this process.
    package var peerProcess: Int32?
    /// The name of the system call that this process waits in.
    package var peerDoes: String?
    /// What the last link of an operation's chain waits for; `pool` if threads of the pool follow.
    package var ends: StallReport.WaitKind?
    /// The app's function of the last link.
    package var holder: String?
    /// The id of the rule that says what to do; `none` if the report does not say it.
    package var advice = ExpectedReport.noAdvice
    /// The parts of the stall's time, if the report has a cause.
    package var split: Split?
    /// The functions of its first stack, innermost first.
    package var functions: [String] = []
    /// The number of different stacks in its samples.
    package var distinctStacks = 1
    /// The number of its samples.
    package var samples = 1
    /// The number of those of the same turn whose stacks do not reach the thread's first function, or are missing.
    package var incompleteSamples = 0

    /// The parts of a stall's time, in milliseconds.
    package struct Split: Equatable, Sendable {
        package var onCPU, runQueue, blocked, uncertainty: Double
    }
}

extension ReportedStall {
    /// The activity of an owner that gets no CPU because it has a lower priority.
    package static let inverted = "priority inversion"

    package init(_ report: StallReport, file: String) {
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
        functions =
            report.samples.first { $0.isValid && $0.stack != nil }
            .map { report.functionNames(of: $0).map(Self.general) } ?? []
    }

    /// An optimized build may run a copy of a function for its callers' constants, which is the same function.
    private static func general(_ function: String) -> String {
        function.replacing("specialized ", with: "", maxReplacements: 1)
    }

    /// Whether the culprit is the first of these functions, and the stack has the others from there outwards.
    package func hasStack(of wanted: [String]) -> Bool {
        var left = wanted[...]
        for name in functions where name == left.first { left.removeFirst() }
        return left.isEmpty && function == wanted.first
    }
}

extension ReportedStall {
    /// Reads the report `name` in `directory`.
    package static func read(_ name: String, in directory: String) throws(ScenariosFailure) -> ReportedStall {
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
    package init(_ cause: StallReport.Cause) {
        self.init(
            onCPU: cause.onCPUMilliseconds, runQueue: cause.runQueueMilliseconds, blocked: cause.blockedMilliseconds,
            uncertainty: cause.uncertaintyMilliseconds
        )
    }
}
