import StallReports

/// One event for a sink.
enum Delivery: Sendable {
    /// A stall's first named report: `ongoing`, unless the stall has already ended.
    case began(StallReport)
    /// A newer report of an ongoing stall, or its first report without names.
    case updated(StallReport)
    /// A stall's final report: the stall ended, or the monitor stopped following it.
    ///
    /// With a reason, the stall is suppressed: counted, but not reported.
    case ended(StallReport, SuppressionReason?)
    /// A report that an earlier process left, now `abandoned`.
    case recovered(StallReport)
    /// The report of a stall that has reached the app's escalation time.
    case escalated(StallReport)
    /// A log message about the monitor itself, with its metadata.
    case notice(String, [String: String])
    /// What the loops did in an interval.
    case interval([LoopInterval])

    /// The report's id; `nil` for a notice.
    var id: String? {
        switch self {
        case .began(let report), .updated(let report), .ended(let report, _), .recovered(let report),
            .escalated(let report):
            report.id
        case .notice, .interval: nil
        }
    }

    /// The kind of this delivery.
    var interest: Interest {
        switch self {
        case .began: .began
        case .updated: .updated
        case .ended(_, nil): .ended
        case .ended: .suppressed
        case .recovered: .recovered
        case .escalated: .escalated
        case .notice: .notice
        case .interval: .interval
        }
    }

    /// The kinds of deliveries that a sink receives.
    struct Interest: OptionSet, Sendable {
        let rawValue: Int
        static let began = Interest(rawValue: 1)
        static let updated = Interest(rawValue: 2)
        static let ended = Interest(rawValue: 4)
        static let suppressed = Interest(rawValue: 8)
        static let recovered = Interest(rawValue: 16)
        static let escalated = Interest(rawValue: 32)
        static let notice = Interest(rawValue: 64)
        static let interval = Interest(rawValue: 128)

        /// Final reports of this process and of earlier ones.
        static let finished: Interest = [.ended, .recovered]
    }
}
