import StallWatch

/// The result of a scenario: whether its reports are the right ones.
enum ScenarioResult: String, Codable, Sendable, CaseIterable {
    case ok
    case missed
    /// The report has another kind, such as a stall instead of a saturation, or its samples do not show which one it was.
    case wrongKind = "wrong-kind"
    /// The report names another loop, another kind of loop, or another nesting depth.
    case wrongLoop = "wrong-loop"
    case wrongMode = "wrong-mode"
    case wrongCallout = "wrong-callout"
    case wrongFunction = "wrong-function"
    case wrongDuration = "wrong-duration"
    case wrongCause = "wrong-cause"
    /// The report names another owner of the lock, or one although there is none, another process that is waited for, or
    /// another end of what an operation waits for.
    case wrongOwner = "wrong-owner"
    /// The report says what to do by another rule, or although it should not.
    case wrongAdvice = "wrong-advice"
    /// The parts of the stall's time do not add up to its duration, or differ from the injected ones.
    case wrongSplit = "wrong-split"
    /// The report has another number of timers or items that waited.
    case wrongVictims = "wrong-victims"
    /// Too many of the report's stacks do not reach the thread's first function.
    case incompleteStack = "incomplete-stack"
    case falseAlarm = "false-alarm"
    /// The monitor did not count a stall that it had to suppress.
    case notCounted = "not-counted"
    /// The monitor suppressed the stall and counted it, because the process could not run.
    case suppressed
    /// Other programs had the CPUs for so long that the stall was of another cause: nothing was judged.
    case inconclusive
    /// The scenario cannot run on this machine: nothing was judged.
    case notAvailable = "not-available"
    /// The program's process crashed, failed or did not end in time.
    case noResult = "no-result"
}

extension ScenarioResult {
    var isFailure: Bool { self != .ok && self != .notAvailable && self != .inconclusive }

    /// How far a reported duration may be from the injected one, in milliseconds.
    static let toleratedMilliseconds = 5.0
    /// The same as a part of the injected duration; the larger tolerance applies.
    static let toleratedPart = 0.02

    /// How far a timer's reported delay may be from the right one, as a part of it.
    static let toleratedDelayPart = 0.05

    /// How long turns without work may take in all, right after a stall, in milliseconds.
    static let shortTurnsMilliseconds = 20.0

    /// How late the end of a period is seen in which no thread runs a loop: it is looked at once a second.
    static let toleratedLookMilliseconds = 1_500.0

    /// How far the sum of the parts of a stall's time may be from its duration, in addition to ``toleratedPart`` of it.
    static let toleratedSplitMilliseconds = 2.0

    /// One sample in so many may have an incomplete stack: of a few samples none.
    static let samplesPerIncompleteOne = 10

    /// Returns how far a reported duration may be from an injected one, both in milliseconds.
    fileprivate static func tolerance(_ injected: Double) -> Double {
        max(toleratedMilliseconds, injected * toleratedPart)
    }
}

extension Outcome {
    /// The result; if several things are wrong, the most informative one.
    var result: ScenarioResult {
        if hasFailed { return .noResult }
        if unavailable != nil { return .notAvailable }
        if notCounted != nil { return .notCounted }
        let result = expected.map(judge) ?? judgeQuiet()
        return wasShortOfCPU(result) ? .inconclusive : result
    }

    /// Whether other programs kept the main thread from stalling as intended.
    ///
    /// The report says so, and by the kernel's count the thread was ready to run for half of the stall. Near the half it
    /// names the other cause, and has no advice for it.
    private func wasShortOfCPU(_ result: ScenarioResult) -> Bool {
        guard let expected, !expected.isShortOfCPU, expected.loop == "main", let injected = injectedMilliseconds else {
            return false
        }
        return switch result {
        case .wrongCause: own?.cause == "cpuContention" && runnableMilliseconds >= injected / 2
        case .wrongAdvice: own?.cause == expected.cause && runnableMilliseconds >= injected * 0.45
        default: false
        }
    }

    private func judge(by expected: ExpectedReport) -> ScenarioResult {
        guard ownReports.count >= expected.count else {
            if ownReports.count + suppressedStalls >= expected.count { return .suppressed }
            return reports.count > ownReports.count ? .wrongLoop : .missed
        }
        guard expected.stacks.allSatisfy({ stack in ownReports.contains { $0.hasStack(of: stack) } }) else {
            return .wrongFunction
        }
        // The longest report is that of the longest stall, and so on.
        let stalls = injected.sorted(by: >)
        for (index, report) in ownReports.prefix(expected.count).enumerated() {
            if let wrong = expected.mismatch(with: report) { return wrong }
            guard index < stalls.count, report.isClose(to: stalls[index], waited: waitedMilliseconds) else {
                return .wrongDuration
            }
            if let wrong = expected.causeMismatch(with: report) { return wrong }
            if expected.ends != nil, report.ends != expected.ends { return .wrongOwner }
            if let holder = expected.holder, report.holder != holder { return .wrongOwner }
            if expected.hasWrongPeer(report, process: peer) { return .wrongOwner }
            if let others = expected.meanwhile, report.meanwhile != others { return .wrongOwner }
            if let advice = expected.advice, report.advice != advice { return .wrongAdvice }
            if expected.hasWrongSplit(report, threshold: thresholdMilliseconds) { return .wrongSplit }
            if expected.hasWrongVictims(report, threshold: thresholdMilliseconds) { return .wrongVictims }
            if expected.hasWrongDelay(report, measured: timerDelay, wait: timerWait) { return .wrongDuration }
            if report.hasIncompleteStacks { return .incompleteStack }
        }
        let others = reports.filter { $0.loop == expected.besides }
        guard expected.besides == nil || others.map(\.kind) == [.stall] else {
            return others.isEmpty ? .missed : .falseAlarm
        }
        return reports.count - others.count == expected.count ? .ok : .falseAlarm
    }

    private func judgeQuiet() -> ScenarioResult {
        // A stall that the watchdog had no CPU to look at has no cause.
        if let toleratedCause {
            return reports.allSatisfy { [toleratedCause, nil].contains($0.cause) } ? .ok : .falseAlarm
        }
        let injected = injectedMilliseconds ?? 0
        guard let own else {
            return injected > thresholdMilliseconds + ScenarioResult.tolerance(injected) ? .missed : .ok
        }
        // A busy machine can turn a short stall into a long one. The time measured on the thread is the truth, and a report
        // that agrees with it is right. The turn is slightly longer than the time measured in it.
        let mayHaveStalled = injected >= thresholdMilliseconds * (1 - ScenarioResult.toleratedPart)
        return mayHaveStalled && own.isClose(to: injected) && reports.count == 1 ? .ok : .falseAlarm
    }
}

extension ExpectedReport {
    /// Whether the stall is meant to leave the thread without a CPU.
    var isShortOfCPU: Bool { cause == "cpuContention" || cause == "throttled" }

    fileprivate func mismatch(with report: ReportedStall) -> ScenarioResult? {
        if report.kind != kind || differingSamples && report.distinctStacks < 2 { return .wrongKind }
        if loopKind != nil && report.loopKind != loopKind || report.nesting != nesting { return .wrongLoop }
        if mode != nil && report.mode != mode { return .wrongMode }
        if callout != nil && report.callout != callout { return .wrongCallout }
        return function != nil && report.function != function ? .wrongFunction : nil
    }

    fileprivate func causeMismatch(with report: ReportedStall) -> ScenarioResult? {
        guard call.map({ report.call?.contains($0) == true }) ?? true else { return .wrongCause }
        guard let cause else { return nil }
        guard report.cause == cause, lock == nil || report.lock == lock else { return .wrongCause }
        return report.owner == owner && (ownerDoes == nil || report.ownerDoes == ownerDoes) ? nil : .wrongOwner
    }

    /// Whether the report names another process that the thread waits for, or another activity of it.
    fileprivate func hasWrongPeer(_ report: ReportedStall, process: Int32?) -> Bool {
        guard let peer else { return false }
        return report.peer != peer || process.map { $0 != report.peerProcess } ?? false
            || peerDoes.map { $0 != report.peerDoes } ?? false
    }

    fileprivate func hasWrongVictims(_ report: ReportedStall, threshold: Double) -> Bool {
        guard let victims else { return false }
        // It fires once after the stall, for the first of the times that have passed by then.
        let firings = (report.milliseconds / threshold - victims.due) / victims.every
        let skipped = victims.every > 0 ? Int(max(firings, 0)) : 0
        // A thread that waits for a CPU makes a turn without work longer.
        let hasWrongTurns =
            victims.later > 0 ? report.later < victims.later : report.later >= ScenarioResult.shortTurnsMilliseconds
        return report.timers != victims.timers || report.items != victims.items || report.skippedFirings != skipped
            || report.operations != victims.operations || hasWrongTurns
    }

    /// Whether the report has another delay of the timers than they have measured, or another time within the stall.
    fileprivate func hasWrongDelay(_ report: ReportedStall, measured delay: Double?, wait: Double?) -> Bool {
        guard let victims, victims.items ?? 0 == 0 else { return false }
        guard victims.timers > 0 else { return victims.operations == 0 && report.wait > 0 }
        func isWrong(_ reported: Double?, _ measured: Double?) -> Bool {
            guard let reported, let measured else { return true }
            let tolerance = max(measured * ScenarioResult.toleratedDelayPart, ScenarioResult.toleratedMilliseconds)
            return abs(reported - measured) > tolerance
        }
        return isWrong(report.timerDelay, delay) || isWrong(report.wait, wait)
    }

    fileprivate func hasWrongSplit(_ report: ReportedStall, threshold: Double) -> Bool {
        guard let split = report.split else { return onCPU != nil }
        let tolerance = ScenarioResult.toleratedSplitMilliseconds + report.milliseconds * ScenarioResult.toleratedPart
        guard abs(split.onCPU + split.runQueue + split.blocked - report.milliseconds) <= tolerance else { return true }
        return onCPU.map { abs(split.onCPU - threshold * $0) > tolerance + split.uncertainty } ?? false
    }
}

extension ReportedStall {
    /// Whether so many stacks are incomplete that the report may hide its culprit, or invent frames.
    fileprivate var hasIncompleteStacks: Bool {
        // A task that polls may be met awake, and its thread is stopped for the report's own samples only.
        let tolerated = kind == .pinned ? 1 : 0
        return (incompleteSamples - tolerated) * ScenarioResult.samplesPerIncompleteOne > samples
    }

    /// Whether the stall can have taken `injected` milliseconds; allows for the uncertain begin of the stall, and for
    /// `waited` milliseconds in which the thread waited for a CPU outside the measured time.
    fileprivate func isClose(to injected: Double, waited: Double = 0) -> Bool {
        let looks = kind == .notRun ? ScenarioResult.toleratedLookMilliseconds : 0
        let tolerance = ScenarioResult.tolerance(injected) + looks
        // A pinned thread is known to have its task until the last look that found the task there.
        let lateLook = kind == .pinned ? injected / 4 : 0
        return milliseconds - tolerance - waited <= injected
            && injected <= milliseconds + startUncertainty + tolerance + lateLook
    }
}

/// One run of a scenario: the injected stalls and the reports of them; the summary file keeps it without what the
/// scenario says itself, so that the reports can be judged again.
struct Outcome: Codable, Equatable, Sendable {
    private enum CodingKeys: CodingKey {
        case scenario, thresholdMilliseconds, injected, reports, notCounted, suppressedStalls, runnableMilliseconds,
            waitedMilliseconds, peer, timerDelay, timerWait, unavailable, hasFailed, retries
    }

    let scenario: String
    var expected: ExpectedReport?
    let thresholdMilliseconds: Double
    var injected: [Double]
    var reports: [ReportedStall]
    var toleratedCause: String?
    /// The reason for which the monitor had to suppress a stall but counted none; `nil` if it counted.
    var notCounted: SuppressionReason?
    /// The number of stalls that the monitor suppressed and counted, because the process could not run.
    var suppressedStalls = 0
    /// How long the main thread was ready to run without a CPU during the run, by the kernel's count.
    var runnableMilliseconds = 0.0
    /// The part of ``runnableMilliseconds`` by which a turn may be longer than the time measured in it; zero for stalls
    /// of other threads, or of a thread that is meant to have no CPU.
    var waitedMilliseconds = 0.0
    /// The id of the process for which the thread waits.
    var peer: Int32?
    /// How late the latest of the timers that waited was, and for how long they waited within the stall in all, by their
    /// own measurement, in milliseconds.
    var timerDelay: Double?
    var timerWait: Double?
    var unavailable: String?
    /// Whether the scenario's child crashed, failed or did not end in time.
    var hasFailed = false
    /// The number of attempts before this one (``RetryPolicy``).
    var retries = 0

    /// How long the longest injected stall took; `nil` if there was none.
    var injectedMilliseconds: Double? { injected.max() }

    /// The scenario's report: the longest one of the stalled loop, or of any loop if none was meant to stall.
    var own: ReportedStall? { ownReports.first }

    /// The reports of the stalled loop, or all of them if none was meant to stall, longest first.
    var ownReports: [ReportedStall] {
        reports.filter { expected == nil || $0.loop == expected?.loop }.sorted { $0.milliseconds > $1.milliseconds }
    }
}
