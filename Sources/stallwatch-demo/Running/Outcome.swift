import StallWatch

/// What a report says, as far as it is judged.
struct ReportedStall: Equatable, Sendable {
    /// The report's file.
    var file: String
    var kind = StallReport.Kind.stall
    /// The loop's label.
    var loop: String
    var loopKind = StallReport.LoopKind.runLoop
    var nesting = 0
    var mode: String?
    var callout: StallReport.Callout?
    var milliseconds: Double
    /// By how much the stall may have begun earlier, where only a heartbeat tells of it.
    var startUncertainty = 0.0
    /// The function that is blamed.
    var function: String?
    /// The kind of the cause.
    var cause: String?
    /// The name of the thread that holds the lock that was waited for.
    var owner: String?
    /// What that thread does: `running`, or the name of the system call that it waits in.
    var ownerDoes: String?
    /// The kind of lock that was waited for.
    var lock: StallReport.LockKind?
    /// The system call that was waited in, and what it was on.
    var call: String?
    /// Where the time went to, if the report says why the turn was late.
    var split: Split?
    /// How many stacks its samples show.
    var distinctStacks = 1

    /// The parts of a stall's time, in milliseconds.
    struct Split: Equatable, Sendable {
        var onCPU, runQueue, blocked, uncertainty: Double
    }
}

extension ReportedStall {
    init(_ report: StallReport, file: String) {
        self.init(
            file: file, kind: report.kind, loop: report.loop.label, loopKind: report.loop.kind,
            nesting: report.loop.nesting, mode: report.loop.mode, callout: report.callout,
            milliseconds: report.durationMilliseconds, startUncertainty: report.startUncertaintyMilliseconds ?? 0,
            function: report.culprit?.function, cause: report.cause?.kind.rawValue,
            owner: report.cause?.lock?.owners.first?.thread.name,
            ownerDoes: report.cause?.lock?.owners.first.flatMap { $0.isRunning ? "running" : $0.systemCall?.name },
            lock: report.cause?.lock?.kind,
            call: (report.cause?.systemCall).map { $0.name + "(" + ($0.target ?? "") + ")" },
            split: report.cause.map(Split.init),
            distinctStacks: Set(report.samples.compactMap(\.stack)).count
        )
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

/// What came of a scenario.
struct Outcome: Equatable, Sendable {
    let scenario: String
    let expected: ExpectedReport?
    let thresholdMilliseconds: Double
    /// How long each injected stall took on the stalled thread.
    var injected: [Double]
    /// All that was reported meanwhile.
    var reports: [ReportedStall]
    /// The kind of cause that reports may have which need not be there.
    var toleratedCause: String?
    /// Why the monitor had to hold something back and did not; `nil` when all is well.
    var notCounted: SuppressionReason?
    /// How long the main thread was ready to run but had no CPU meanwhile, by the kernel's count, where that is granted.
    ///
    /// In a soak much else wants one. The turn is longer by it, and what is measured in the turn is not.
    var waitedMilliseconds = 0.0
    /// Why the scenario could not run.
    var unavailable: String?

    /// How long the longest injected stall took; `nil` when none was injected.
    var injectedMilliseconds: Double? { injected.max() }

    /// The report that is the scenario's: the longest of the loop that was to stall, or of any where none was to.
    var own: ReportedStall? { ownReports.first }

    /// The reports of the loop that was to stall, or all where none was to, longest first.
    var ownReports: [ReportedStall] {
        reports.filter { expected == nil || $0.loop == expected?.loop }.sorted { $0.milliseconds > $1.milliseconds }
    }
}
