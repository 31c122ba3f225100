import StallReports

/// Follows stalls from report to report and returns each event once.
struct StallFollower {
    /// An event of a stall.
    enum Event: String, Encodable, Sendable {
        /// The stall is going on.
        case began
        /// The stall has ended.
        case ended
        /// Its end was not observed: the monitor stopped, or the next monitor found the report open.
        case abandoned
        /// Its process is gone, and the report still says ongoing.
        case died
    }

    /// Ongoing stalls, by id.
    private(set) var ongoing: [String: ReportSummary] = [:]
    /// The last event of each stall, so that a report that is only rewritten (with names) gives no new event.
    private var reported: [String: Event] = [:]
    /// The most ids in memory; over it, all but the ongoing ones are dropped.
    private static let maximumReported = 100_000

    /// Records a report that existed before the start, without an event.
    mutating func skip(_ report: ReportSummary) { reported[report.id] = Self.event(of: report) }

    /// Returns the event of a new or changed report; `nil` for none.
    mutating func take(_ report: ReportSummary) -> Event? {
        let event = Self.event(of: report)
        // The process may still run, in another pid namespace. Its death is not reported twice.
        if event == .began, reported[report.id] == .died { return nil }
        ongoing[report.id] = event == .began ? report : nil
        guard reported[report.id] != event else { return nil }
        if reported.count > Self.maximumReported { reported = reported.filter { ongoing[$0.key] != nil } }
        reported[report.id] = event
        return event
    }

    /// Returns the ongoing stalls whose processes are gone.
    mutating func dead(isGone: (ReportSummary) -> Bool) -> [ReportSummary] {
        let dead = ongoing.values.filter(isGone).sorted { $0.startedAt < $1.startedAt }
        for report in dead {
            ongoing[report.id] = nil
            reported[report.id] = .died
        }
        return dead
    }

    private static func event(of report: ReportSummary) -> Event {
        switch report.state {
        case .ongoing: .began
        case .abandoned: .abandoned
        default: .ended
        }
    }
}
