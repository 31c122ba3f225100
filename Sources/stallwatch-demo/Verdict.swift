import StallWatch

/// Whether what was reported of a scenario is what had to be.
enum Verdict: String, Codable, Sendable, CaseIterable {
    /// It is.
    case ok
    /// There was a stall and no report of it.
    case missed
    /// The report blames another function.
    case wrongFunction = "wrong-function"
    /// The report's duration is too far from the stall's.
    case wrongDuration = "wrong-duration"
    /// There was a report too many.
    case falseAlarm = "false-alarm"
}

extension Verdict {
    /// How far a reported duration may be from the injected one, in milliseconds.
    static let toleratedMilliseconds = 5.0
    /// The same as a part of the injected one; whichever is more counts.
    static let toleratedPart = 0.02

    /// Judges what was reported.
    ///
    /// - Parameters:
    ///   - expected: What the report must say; `nil` when there must be none.
    ///   - thresholdMilliseconds: The monitor's threshold.
    ///   - injectedMilliseconds: How long the stall took in truth.
    ///   - own: The report that is taken for the stall's.
    ///   - reportCount: All reports that came, of whatever loop.
    /// - Returns: The verdict. Where several things are wrong, the one that says most.
    static func judge(
        expected: Scenario.ExpectedReport?, thresholdMilliseconds: Double, injectedMilliseconds: Double?,
        own: ReportedStall?, reportCount: Int
    ) -> Verdict {
        let injected = injectedMilliseconds ?? 0
        let hasStalled = expected != nil || injected > thresholdMilliseconds + tolerance(injected)
        guard let own else { return hasStalled ? .missed : .ok }
        let isClose = abs(own.milliseconds - injected) <= tolerance(injected)
        if let expected {
            guard own.function == expected.function else { return .wrongFunction }
            guard isClose else { return .wrongDuration }
        } else {
            // A machine that is busy elsewhere may keep a thread from running until a short stall is a long one. What was
            // measured on the thread itself is the truth, and a report that says the same is right. The turn is a little
            // longer than what was measured in it.
            let mayHaveStalled = injected >= thresholdMilliseconds * (1 - toleratedPart)
            guard mayHaveStalled, isClose else { return .falseAlarm }
        }
        return reportCount == 1 ? .ok : .falseAlarm
    }

    private static func tolerance(_ injected: Double) -> Double {
        max(toleratedMilliseconds, injected * toleratedPart)
    }
}

/// What a report says, as far as it is judged.
struct ReportedStall: Equatable, Sendable {
    /// The report's file.
    var file: String
    /// The loop's label.
    var loop: String
    var milliseconds: Double
    /// The function that is blamed.
    var function: String?
}

extension ReportedStall {
    init(_ report: StallReport, file: String) {
        self.init(
            file: file, loop: report.loop.label, milliseconds: report.durationMilliseconds,
            function: report.culprit?.function
        )
    }
}

/// What came of a scenario.
struct Outcome: Equatable, Sendable {
    let scenario: String
    let expected: Scenario.ExpectedReport?
    let thresholdMilliseconds: Double
    /// How long the longest injected stall took on the stalled thread; `nil` when none was injected.
    let injectedMilliseconds: Double?
    /// All that was reported meanwhile.
    var reports: [ReportedStall]

    /// The report that is the scenario's: the longest of the loop that was to stall, or of any where none was to.
    var own: ReportedStall? {
        reports.filter { expected == nil || $0.loop == expected?.loop }.max { $0.milliseconds < $1.milliseconds }
    }

    var verdict: Verdict {
        .judge(
            expected: expected, thresholdMilliseconds: thresholdMilliseconds,
            injectedMilliseconds: injectedMilliseconds, own: own, reportCount: reports.count
        )
    }
}
