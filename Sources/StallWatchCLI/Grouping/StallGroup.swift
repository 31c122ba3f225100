import StallReports

/// Stalls that have the same key: a fingerprint, or another value that groups them.
struct StallGroup: Sendable, Equatable {
    /// `nil` for reports without one.
    let key: String?
    /// Reports.
    private(set) var reports = 0
    /// Repeats that were counted and not reported.
    private(set) var repeats = 0
    /// The reports' durations, in milliseconds, in the order they were added.
    private(set) var durations: [Double] = []
    private(set) var firstSeen = Timestamp(microsecondsSince1970: .max)
    private(set) var lastSeen = Timestamp(microsecondsSince1970: .min)
    /// The longest one.
    private(set) var longest: Longest?
    private var culprits = Tally<ReportSummary.Culprit>()
    private var causes = Tally<String>()
    private var callers = Tally<String>()
    private var fingerprints: Set<String?> = []
    private var loops = Tally<String>()
    private var contexts = Tally<String>()

    /// The report with the longest stall.
    struct Longest: Sendable, Equatable {
        var id: String
        var origin: ReportOrigin
        var milliseconds: Double
    }

    init(key: String?) { self.key = key }

    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin, caller: String? = nil) {
        fingerprints.insert(report.fingerprint)
        if let caller { callers.add(caller, report.durationMilliseconds) }
        reports += 1
        repeats = repeats.addingReportingOverflow(report.repeats).partialValue
        let milliseconds = report.durationMilliseconds
        durations.append(milliseconds)
        firstSeen = min(firstSeen, report.startedAt)
        lastSeen = max(lastSeen, report.startedAt)
        if longest.map({ milliseconds > $0.milliseconds }) ?? true {
            longest = Longest(id: report.id, origin: origin, milliseconds: milliseconds)
        }
        if let culprit = report.culprit { culprits.add(culprit, milliseconds) }
        causes.add((report.cause ?? .unknown).rawValue, milliseconds)
        loops.add(report.loop, milliseconds)
        if let context = report.context { contexts.add(context, milliseconds) }
    }

    /// Stalls: reported ones and repeats.
    var count: Int { reports.addingReportingOverflow(repeats).partialValue }
    /// The sum of the reported durations.
    var totalMilliseconds: Double { durations.reduce(0, +) }
    /// The longest reported duration.
    var maximumMilliseconds: Double { longest?.milliseconds ?? 0 }
    /// The cause of most of the time.
    var cause: String { causes.heaviest { $0 < $1 } ?? StallReport.CauseKind.unknown.rawValue }
    /// The culprit of most of the time.
    var culprit: ReportSummary.Culprit? {
        culprits.heaviest { ($0.function, $0.file ?? "", $0.line ?? 0) < ($1.function, $1.file ?? "", $1.line ?? 0) }
    }
    /// The fingerprint, if all stalls have the same.
    var fingerprint: String? { fingerprints.count == 1 ? fingerprints.first ?? nil : nil }
    /// The caller of the culprit, if it was looked up.
    var caller: String? { callers.heaviest { $0 < $1 } }
    /// The label of the loop that most of the time was lost on.
    var loop: String { loops.heaviest { $0 < $1 } ?? "" }
    /// The number of loops it happened on.
    var loopCount: Int { loops.count }
    /// The context of most of the time; `nil` if no stall has one.
    var context: String? { contexts.heaviest { $0 < $1 } }
    /// The number of contexts.
    var contextCount: Int { contexts.count }

    /// The nearest-rank quantile of the reported durations.
    func milliseconds(quantile: Double) -> Double {
        guard !durations.isEmpty else { return 0 }
        let sorted = durations.sorted()
        let rank = Int((quantile * Double(sorted.count)).rounded(.up))
        return sorted[min(max(rank, 1), sorted.count) - 1]
    }
}
