import StallWatch

/// Whether what was reported of a scenario is what had to be.
enum ScenarioResult: String, Codable, Sendable, CaseIterable {
    /// It is.
    case ok
    /// There was a stall and no report of it.
    case missed
    /// The report is of another kind: a stall and not a saturation, say; or its samples do not tell the two apart.
    case wrongKind = "wrong-kind"
    /// The report is of another loop, another kind of loop, or another of its nested runs.
    case wrongLoop = "wrong-loop"
    /// The report names another mode.
    case wrongMode = "wrong-mode"
    /// The report names another callout.
    case wrongCallout = "wrong-callout"
    /// The report blames another function.
    case wrongFunction = "wrong-function"
    /// The report's duration is too far from the stall's.
    case wrongDuration = "wrong-duration"
    /// The report names another cause.
    case wrongCause = "wrong-cause"
    /// The report names another owner of what was waited for, or one where there is none.
    case wrongOwner = "wrong-owner"
    /// The parts of the stall's time do not add up to its duration, or are not what was injected.
    case wrongSplit = "wrong-split"
    /// There was a report too many.
    case falseAlarm = "false-alarm"
    /// What the monitor had to hold back was not counted.
    case notCounted = "not-counted"
    /// The scenario cannot run on this machine: nothing was judged.
    case notAvailable = "not-available"
}

extension ScenarioResult {
    /// Whether nothing was wrong.
    var isRight: Bool { self == .ok || self == .notAvailable }

    /// How far a reported duration may be from the injected one, in milliseconds.
    static let toleratedMilliseconds = 5.0
    /// The same as a part of the injected one; whichever is more counts.
    static let toleratedPart = 0.02

    /// How far the parts of a stall's time may be from adding up to it: so much and ``toleratedPart`` of it.
    static let toleratedSplitMilliseconds = 2.0

    /// How far a reported duration may be from an injected one, both in milliseconds.
    fileprivate static func tolerance(_ injected: Double) -> Double {
        max(toleratedMilliseconds, injected * toleratedPart)
    }
}

extension Outcome {
    /// The verdict.
    ///
    /// Where several things are wrong, the one that says most.
    var verdict: ScenarioResult {
        if unavailable != nil { return .notAvailable }
        if notCounted != nil { return .notCounted }
        return expected.map(judge) ?? judgeQuiet()
    }

    private func judge(by expected: ExpectedReport) -> ScenarioResult {
        guard ownReports.count >= expected.count else { return reports.count > ownReports.count ? .wrongLoop : .missed }
        // The longest report is that of the longest stall, and so on.
        let stalls = injected.sorted(by: >)
        for (index, report) in ownReports.prefix(expected.count).enumerated() {
            if let wrong = expected.mismatch(with: report) { return wrong }
            guard index < stalls.count, report.isClose(to: stalls[index], waited: waitedMilliseconds) else {
                return .wrongDuration
            }
            if let wrong = expected.causeMismatch(with: report) { return wrong }
            if expected.hasWrongSplit(report, threshold: thresholdMilliseconds) { return .wrongSplit }
        }
        return reports.count == expected.count ? .ok : .falseAlarm
    }

    private func judgeQuiet() -> ScenarioResult {
        if let toleratedCause { return reports.allSatisfy { $0.cause == toleratedCause } ? .ok : .falseAlarm }
        let injected = injectedMilliseconds ?? 0
        guard let own else {
            return injected > thresholdMilliseconds + ScenarioResult.tolerance(injected) ? .missed : .ok
        }
        // A machine that is busy elsewhere may keep a thread from running until a short stall is a long one. What was
        // measured on the thread itself is the truth, and a report that says the same is right. The turn is a little
        // longer than what was measured in it.
        let mayHaveStalled = injected >= thresholdMilliseconds * (1 - ScenarioResult.toleratedPart)
        return mayHaveStalled && own.isClose(to: injected) && reports.count == 1 ? .ok : .falseAlarm
    }
}

extension ExpectedReport {
    /// What the report has wrong, duration aside.
    fileprivate func mismatch(with report: ReportedStall) -> ScenarioResult? {
        if report.kind != kind || differingSamples && report.distinctStacks < 2 { return .wrongKind }
        if loopKind != nil && report.loopKind != loopKind || report.nesting != nesting { return .wrongLoop }
        if mode != nil && report.mode != mode { return .wrongMode }
        if callout != nil && report.callout != callout { return .wrongCallout }
        return function != nil && report.function != function ? .wrongFunction : nil
    }

    /// What the report has wrong about why it was.
    fileprivate func causeMismatch(with report: ReportedStall) -> ScenarioResult? {
        guard let cause else { return nil }
        guard report.cause == cause, lock == nil || report.lock == lock,
            call.map({ report.call?.contains($0) == true }) ?? true
        else { return .wrongCause }
        return report.owner == owner && (ownerDoes == nil || report.ownerDoes == ownerDoes) ? nil : .wrongOwner
    }

    /// Whether the parts of the time, where there are any, do not add up or are not those that are known.
    fileprivate func hasWrongSplit(_ report: ReportedStall, threshold: Double) -> Bool {
        guard let split = report.split else { return onCPU != nil }
        let tolerance = ScenarioResult.toleratedSplitMilliseconds + report.milliseconds * ScenarioResult.toleratedPart
        guard abs(split.onCPU + split.runQueue + split.blocked - report.milliseconds) <= tolerance else { return true }
        return onCPU.map { abs(split.onCPU - threshold * $0) > tolerance + split.uncertainty } ?? false
    }
}

extension ReportedStall {
    /// Whether the stall may have taken `injected` milliseconds: what is uncertain about its beginning is granted, and that the
    /// turn's thread `waited` for a CPU before and after what was measured in it.
    fileprivate func isClose(to injected: Double, waited: Double = 0) -> Bool {
        let tolerance = ScenarioResult.tolerance(injected)
        return milliseconds - tolerance - waited <= injected && injected <= milliseconds + startUncertainty + tolerance
    }
}
