import StallWatch

/// One run of a scenario: the injected stalls and the reports of them.
struct Outcome: Equatable, Sendable {
    let scenario: String
    let expected: ExpectedReport?
    let thresholdMilliseconds: Double
    /// How long each injected stall took on the stalled thread.
    var injected: [Double]
    /// All reports made during the run.
    var reports: [ReportedStall]
    /// The kind of cause that unexpected reports may have.
    var toleratedCause: String?
    /// The reason for which the monitor had to suppress a stall but counted none; `nil` if it counted.
    var notCounted: SuppressionReason?
    /// The number of stalls that the monitor suppressed and counted, because the process could not run.
    var suppressedStalls = 0
    /// How long the main thread was ready to run without a CPU during the run, by the kernel's count.
    var runnableMilliseconds = 0.0
    /// The part of ``runnableMilliseconds`` by which a turn may be longer than the time measured in it.
    ///
    /// Zero except in a soak, where much else wants a CPU.
    var waitedMilliseconds = 0.0
    /// Why the scenario cannot run.
    var unavailable: String?
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
