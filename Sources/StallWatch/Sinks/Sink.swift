import StallReports

/// What a sink is given.
enum Delivery: Sendable {
    /// A stall has been seen: its first report, `ongoing` unless it was over at once.
    case began(StallReport)
    /// An ongoing stall's report, with one more sample.
    case updated(StallReport)
    /// A stall is over, or nobody will see its end.
    ///
    /// With a reason, it is not to be reported, only counted.
    case ended(StallReport, SuppressionReason?)
    /// A report that an earlier process has left, now `abandoned`.
    case recovered(StallReport)
    /// A stall has lasted for as long as the app does not want to wait.
    case escalated(StallReport)
    /// Something that the log should tell about the monitor itself.
    case notice(String, [String: String])

    /// The report's id; `nil` for a notice.
    var id: String? {
        switch self {
        case .began(let report), .updated(let report), .ended(let report, _), .recovered(let report),
            .escalated(let report):
            report.id
        case .notice: nil
        }
    }

    var interest: Interest {
        switch self {
        case .began: .began
        case .updated: .updated
        case .ended(_, nil): .ended
        case .ended: .suppressed
        case .recovered: .recovered
        case .escalated: .escalated
        case .notice: .notice
        }
    }

    /// The kinds of delivery that a sink wants.
    struct Interest: OptionSet, Sendable {
        let rawValue: Int
        static let began = Interest(rawValue: 1)
        static let updated = Interest(rawValue: 2)
        static let ended = Interest(rawValue: 4)
        static let suppressed = Interest(rawValue: 8)
        static let recovered = Interest(rawValue: 16)
        static let escalated = Interest(rawValue: 32)
        static let notice = Interest(rawValue: 64)

        /// Reports of stalls that are over.
        static let finished: Interest = [.ended, .recovered]
    }
}

/// Where reports go.
///
/// Made and used by one thread, the sink's own.
protocol Sink: AnyObject {
    /// Called once, before anything is delivered.
    func start()

    /// Takes one delivery.
    ///
    /// May take its time.
    func take(_ delivery: Delivery) throws(StallWatchError)

    /// Called once, after the last delivery.
    func finish()
}

extension Sink {
    func start() {}
    func finish() {}
}

/// What a sink's thread needs to know of its sink.
struct SinkDescription: Sendable {
    /// The thread's name: 15 bytes at most.
    var name: String
    /// What the sink wants to be given.
    var interest: Delivery.Interest
    /// Whether a delivery that failed is tried again, and a newer one for the same report takes an older one's place.
    ///
    /// Right for files, where the newest state is all that counts; wrong for code that may have done half its work.
    var isStore = false
    /// Makes the sink, on its own thread.
    var make: @Sendable () -> any Sink
}

/// Checks that a sink can work and describes it.
///
/// The second parameter takes the reports that an earlier process left.
typealias SinkFactory =
    @Sendable (ReportCounts, _ recovered: @escaping @Sendable (StallReport) -> Void) throws(StallWatchError)
    -> SinkDescription
