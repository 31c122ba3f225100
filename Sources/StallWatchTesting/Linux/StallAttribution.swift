import StallReports
import StallSymbols
import Testing

/// The tests that a stall belongs to, by the functions on its stacks and by the tests that ran: a pure decision.
///
/// Each sample is decided by itself, and counts with the time that it stands for:
///
/// 1. A sample whose stack shows the function of one test in scope belongs to that test. The callers of an async function
///    are part of the stack, and so is the function around a closure.
/// 2. A sample whose stack shows that Swift Testing runs another test belongs to none of those in scope.
/// 3. Any other sample belongs to the only test that was in scope when the stall began. If several may have been, it is
///    not known to which of them it belongs. If none was, it belongs to code that no test watches.
///
/// Samples without a stack are shared out like the others.
struct StallAttribution {
    struct Candidate {
        var function: WatchedFunction?
        var began: Timestamp
        /// `nil` while it runs.
        var ended: Timestamp?
        /// Whether the test has its results already: it may have left the stall behind, which only a stack shows.
        var hasLeft = false
    }

    struct Part {
        var report: StallReport
        /// The share of the stall's duration, 0 to 1.
        var share: Double
    }

    private enum Owner: Hashable {
        case test(Int)
        case oneOf(Set<Int>)
        case unwatched
    }

    private(set) var parts: [Int: Part] = [:]
    /// The part that belongs to one of several tests, and the indices of these, ascending.
    private(set) var unknown: (part: Part, candidates: [Int])?

    /// `candidates` are the tests that watch the loop and ran at some time during the stall.
    init(_ report: StallReport, among candidates: [Candidate]) {
        let running = candidates.indices.filter { index in
            candidates[index].began <= report.startedAt
                && candidates[index].ended.map { $0 >= report.earliestStart } ?? true
        }
        let isOver = running.allSatisfy { candidates[$0].hasLeft }
        let unnamed = isOver ? Owner.unwatched : Self.owner(among: Set(running))
        // The owner of each sample; nil without a stack.
        let owners = report.samples.map { Self.owner(of: $0, report, candidates, unnamed) }
        var shares: [Owner: Double] = [:]
        for (owner, share) in zip(owners, report.sampleShares) {
            if let owner { shares[owner, default: 0] += share }
        }
        let total = shares.values.reduce(0, +)
        if total <= 0 { shares = [unnamed: 1] }

        func part(_ isIncluded: (Owner) -> Bool) -> Part? {
            let share = shares.filter { isIncluded($0.key) }.values.reduce(0, +) / (total > 0 ? total : 1)
            guard share > 0 else { return nil }
            let isPart = { owners[$0].map(isIncluded) ?? true }
            return Part(report: Self.report(report, share, of: isPart), share: share)
        }
        for case .test(let index) in shares.keys { parts[index] = part { $0 == .test(index) } }
        let possible = shares.keys.reduce(into: Set<Int>()) { possible, owner in
            if case .oneOf(let tests) = owner { possible.formUnion(tests) }
        }
        unknown = part { if case .oneOf = $0 { true } else { false } }.map { ($0, possible.sorted()) }
    }

    private static func owner(among tests: Set<Int>) -> Owner {
        guard let first = tests.first else { return .unwatched }
        return tests.count == 1 ? .test(first) : .oneOf(tests)
    }

    /// The owner of a sample; `nil` if it has no stack.
    private static func owner(
        of sample: StallReport.Sample, _ report: StallReport, _ candidates: [Candidate], _ unnamed: Owner
    ) -> Owner? {
        let stacks = Set([sample.stack].compactMap(\.self) + (sample.workers ?? []).compactMap(\.stack))
        guard !stacks.isEmpty else { return nil }
        let frames = stacks.flatMap { report.stacks[$0].map { report.frames[$0] } }
        let named = candidates.indices.filter { index in
            candidates[index].function.map { frames.contains(where: $0.contains) } ?? false
        }
        // Of two cases of a test, the one that still runs.
        let present = named.filter { !candidates[$0].hasLeft }
        if !named.isEmpty { return owner(among: Set(present.isEmpty ? named : present)) }
        let innermost = sample.stack.map { report.stacks[$0].map { report.frames[$0] } } ?? []
        return innermost.contains(where: \.runsTest) ? .unwatched : unnamed
    }

    private static func report(_ report: StallReport, _ share: Double, of isIncluded: (Int) -> Bool) -> StallReport {
        var part = report
        part.samples = report.samples.indices.filter(isIncluded).map { report.samples[$0] }
        guard part.samples.count < report.samples.count else { return report }
        part.id = report.idOfPart(with: part.samples)
        part.durationMilliseconds = report.durationMilliseconds * share
        // What waited for all of the stall.
        part.victims = nil
        let scale = part.samples.reduce(0) { $0 + ($1.weightMilliseconds ?? 0) }
        for index in part.samples.indices where scale > 0 {
            part.samples[index].weightMilliseconds? *= part.durationMilliseconds / scale
        }
        part.cause = report.cause.flatMap { $0.part(of: part, whole: report) }
        part.culprit = nil
        if let stack = part.dominantStack, case .culprit(let culprit) = stack.blame { part.culprit = culprit }
        part.nameCause(since: part)
        part.fingerprint = Fingerprint(part).text
        return part
    }
}

extension StallReport {
    /// When the stall began at the earliest: a heartbeat is sent some time after the loop was last seen to be healthy.
    var earliestStart: Timestamp {
        let uncertainty = Int64((startUncertaintyMilliseconds ?? 0) * 1_000)
        return Timestamp(microsecondsSince1970: startedAt.microsecondsSince1970 - uncertainty)
    }

    /// The id of a report with some of this one's samples: two parts have two ids, each the same every time.
    fileprivate func idOfPart(with part: [Sample]) -> String {
        let times = part.map { "\($0.atMilliseconds) \($0.stack ?? -1)" }.joined(separator: " ")
        return id.dropLast(12) + hexadecimal(Fingerprint.hash((id + times).utf8) & 0xffff_ffff_ffff, width: 12)
    }

    /// The time for which the samples show the thread waiting, in milliseconds.
    fileprivate var sampledWait: Double {
        zip(samples, sampleShares).reduce(0) { sum, sample in
            let isBlocked = sample.0.threadState == .blocked || sample.0.threadState == .uninterruptible
            return isBlocked ? sum + sample.1 * durationMilliseconds : sum
        }
    }
}

extension StallReport.Cause {
    /// The C library's functions that only wait for a time, without leading underscores.
    private static let sleeps: Set = ["nanosleep", "clock_nanosleep", "GI___clock_nanosleep", "usleep", "sleep"]

    /// The cause of a part of the stall, as far as the part's own samples show it.
    ///
    /// The whole's split and waits are those of all tests. If they are not this part's, the cause is a sleep that its
    /// stack shows, or not known; `nil` where samples show no thread's state, as of a pool.
    fileprivate func part(of part: StallReport, whole: StallReport) -> Self? {
        guard part.loop.thread != nil, part.samples.contains(where: { $0.threadState != nil }) else { return nil }
        let duration = part.durationMilliseconds
        let blocked = min(part.sampledWait, duration)
        let running = duration - blocked
        let busy = onCPUMilliseconds + runQueueMilliseconds
        let onCPU = busy > 0 ? running * onCPUMilliseconds / busy : running
        var cause = self
        cause.onCPUMilliseconds = onCPU
        cause.runQueueMilliseconds = running - onCPU
        cause.blockedMilliseconds = blocked
        cause.uncertaintyMilliseconds = min(uncertaintyMilliseconds, duration)
        (cause.throttledMilliseconds, cause.stolenMilliseconds, cause.competitors) = (nil, nil, nil)
        let isOfRunning = [StallReport.CauseKind.cpu, .cpuContention, .throttled].contains(kind)
        // All of the wait is this part's, so what the whole says of it is, too.
        let isOwnWait = blocked >= whole.sampledWait * 0.9
        if isOfRunning != (running > blocked) || !isOfRunning && !isOwnWait {
            let innermost = part.dominantStack.flatMap { part.stacks[$0.stack].first }
            // Without its symbol's version.
            let function = innermost.flatMap { part.frames[$0].function }.map { String($0.prefix { $0 != "@" }) } ?? ""
            let isSleep = running < blocked && Self.sleeps.contains(String(function.drop { $0 == "_" }))
            cause = StallReport.Cause(
                kind: running > blocked ? .cpu : isSleep ? .sleep : .unknown, confidence: .likely,
                onCPUMilliseconds: onCPU, runQueueMilliseconds: running - onCPU, blockedMilliseconds: blocked,
                uncertaintyMilliseconds: cause.uncertaintyMilliseconds)
            if isSleep { cause.function = function }
        }
        cause.summary = cause.sentence
        return cause
    }
}

extension StallReport.Frame {
    /// Whether the frame is Swift Testing's, a caller of every test and of no task that a test starts.
    var runsTest: Bool { function?.contains("Runner._runTestCase(") ?? false }
}

/// The part of a stall that the code took, without the time for which the machine kept it from running, in milliseconds.
///
/// A stall is time on a CPU, time blocked, and time ready to run without a CPU. The last part is the machine's: other
/// programs used the CPUs, the host took them (*steal*, which counts as waiting for one), or the cgroup's quota was up.
///
/// `throttledMilliseconds` is not subtracted. It is the time of the whole cgroup: what it kept this thread from running
/// is part of the time without a CPU already, and a thread that slept meanwhile would have slept in any case.
struct CodeTime: Sendable, Equatable {
    var least: Double
    var most: Double

    struct Evidence {
        var hasStack = true
        /// The time for which samples show the thread blocked in the C library, in milliseconds.
        var blocked = 0.0
        /// Whether a pool stalled, which no single thread runs.
        var isOfPool = false
    }

    /// The time of a stall of `duration` milliseconds, whose cause may be unknown.
    init(duration: Double, cause: StallReport.Cause?, _ evidence: Evidence) {
        most = max(duration, 0)
        guard let cause else {
            // A pool without a busy worker has no code that delays it, and neither has a queue that no thread runs: its
            // thread waited for a CPU.
            least = evidence.hasStack && !evidence.isOfPool ? most : 0
            if evidence.isOfPool { most = 0 }
            return
        }
        let blocked = max(cause.blockedMilliseconds, 0)
        if evidence.isOfPool {
            // The monitor does not measure how long workers that compute were without a CPU.
            least = min(blocked, most)
            return
        }
        most -= min(max(cause.runQueueMilliseconds, 0), most)
        // Time blocked is certain if the cause or a sample shows a wait. A thread that is stopped for a capture counts as
        // blocked, too, until the capturing process has got a CPU. With eight busy loops on two CPUs, that was a quarter
        // of the time of code that never waits (measured).
        let isComputing = [.cpu, .cpuContention, .throttled].contains(cause.kind)
        let certain = max(cause.onCPUMilliseconds, 0) + (isComputing ? min(blocked, max(evidence.blocked, 0)) : blocked)
        // The parts leave out what came after the last observation. All of the uncertainty may be time without a CPU.
        least = max(min(certain, most) - max(cause.uncertaintyMilliseconds, 0), 0)
    }

    init(_ report: StallReport) {
        var evidence = Evidence(hasStack: false, isOfPool: report.kind == .starvation)
        for (sample, share) in zip(report.samples, report.sampleShares) {
            guard let stack = sample.stack else { continue }
            evidence.hasStack = true
            let innermost = report.stacks[stack].first.flatMap { report.frames[$0].image }.map {
                report.images[$0].name
            }
            // A thread that waits is in a call of the C library; one that is stopped may be anywhere.
            guard sample.threadState == .blocked || sample.threadState == .uninterruptible,
                innermost?.hasPrefix("libc.") == true || innermost?.hasPrefix("libc-") == true
            else { continue }
            evidence.blocked += share * report.durationMilliseconds
        }
        self.init(duration: report.durationMilliseconds, cause: report.cause, evidence)
    }

    /// Returns a share of the time, 0 to 1.
    func part(_ share: Double) -> CodeTime {
        var part = self
        part.least *= share
        part.most *= share
        return part
    }
}

struct WatchedFunction: Sendable, Equatable {
    var name: String
    var file: String

    /// Whether the frame is the function, or a closure or function in it.
    func contains(_ frame: StallReport.Frame) -> Bool {
        guard let function = frame.function, frame.file == nil || frame.file == file else { return false }
        let plain = function.filter { $0 != "`" }
        guard plain.hasSuffix(name) else { return false }
        let before = plain.dropLast(name.count).last
        return before == nil || before == " " || before == "."
    }
}

extension WatchedFunction {
    init(_ test: Test) {
        // The id's text is Module.Suite/Nested/function()/File.swift:line:column; without a suite Module.function().
        let id = String(describing: test.id)
        self.init(id: id, function: test.name, file: test.sourceLocation.filePath)
    }

    /// The function that a test's id names, or `function` if the id is of an unknown form.
    init(id: String, function: String, file: String) {
        var parts = id.split(separator: "/").map(String.init)
        if parts.count > 1, parts.last?.contains(".swift:") == true { parts.removeLast() }
        if let first = parts.first, let dot = first.firstIndex(of: ".") {
            parts[0] = String(first[first.index(after: dot)...])
        }
        let isKnown = parts.last == function
        self.init(name: (isKnown ? parts.joined(separator: ".") : function).filter { $0 != "`" }, file: file)
    }
}
