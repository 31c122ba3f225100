import StallReports
import Testing

/// A stall that a budget does not allow.
struct StallFinding: Sendable {
    /// The report; of a stall of several tests, only one test's samples.
    var report: StallReport
    /// The time that the code took.
    var time: CodeTime
    /// How severe it is.
    var severity: Issue.Severity
    /// The budget that it exceeds.
    var budget: StallBudget
    /// Whether a baseline excuses it.
    var isExcused = false
    /// The last day on which a baseline excused it; `nil` if none did.
    var expired: CalendarDay?

    /// What happened, how long it took and why, in one or two sentences.
    var sentence: String {
        let report = report
        var text = "\(report.loop.label) stalled for \(whole(report.durationMilliseconds)) ms"
        if let culprit = report.culprit { text += " in \(culprit.function)" }
        let machine = report.durationMilliseconds - time.most
        if machine >= 1 { text += ", \(whole(machine)) ms of them without a CPU" }
        text += " (limit: \(limit))"
        if let cause = report.cause?.summary { text += ". \(cause)" }
        if !text.hasSuffix(".") { text += "." }
        if let expired { text += " The baseline excused it until \(expired)." }
        return text
    }

    private var limit: String {
        guard severity == .warning, let warn = budget.warn else { return "\(whole(budget.fail)) ms" }
        return "\(whole(min(warn, budget.fail))) ms for a warning, \(whole(budget.fail)) ms for a failure"
    }

    private func whole(_ milliseconds: Double) -> Int { Int(milliseconds.rounded()) }
}
