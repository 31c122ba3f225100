import StallReports

/// Follows stalls from report to report: what happens to each is told once.
struct StallFollower {
    /// What happened to a stall.
    enum Event: String, Encodable, Sendable {
        /// It lasts.
        case began
        /// It is over.
        case ended
        /// Its monitor was stopped, or it was found open by the next one.
        case abandoned
        /// Its process is gone, and nobody has said so in the report.
        case died
    }

    /// Stalls that last, by id.
    private(set) var ongoing: [String: ReportSummary] = [:]
    /// Those that were told of, so that a report that is only rewritten (with names) is not told of again.
    private var told: [String: Event] = [:]
    /// Ids that are remembered: past it, all but the ongoing ones are forgotten.
    private static let maximumTold = 100_000

    /// Takes what was there before it began: of that, only stalls that last are told.
    mutating func skip(_ report: ReportSummary) { told[report.id] = Self.event(of: report) }

    /// What a new or changed report tells; `nil` for nothing new.
    mutating func take(_ report: ReportSummary) -> Event? {
        let event = Self.event(of: report)
        // A process that only looked dead (in another pid namespace) may go on, but it is not told to have died again.
        if event == .began, told[report.id] == .died { return nil }
        ongoing[report.id] = event == .began ? report : nil
        guard told[report.id] != event else { return nil }
        if told.count > Self.maximumTold { told = told.filter { ongoing[$0.key] != nil } }
        told[report.id] = event
        return event
    }

    /// Those ongoing stalls whose processes are gone.
    mutating func dead(isGone: (ReportSummary) -> Bool) -> [ReportSummary] {
        let dead = ongoing.values.filter(isGone).sorted { $0.startedAt < $1.startedAt }
        for report in dead {
            ongoing[report.id] = nil
            told[report.id] = .died
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
