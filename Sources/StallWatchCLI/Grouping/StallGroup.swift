import StallReports

/// Stalls with the same fingerprint.
struct StallGroup: Sendable, Equatable {
    /// `nil` for reports that have none.
    let fingerprint: String?
    /// Reports.
    private(set) var reports = 0
    /// Stalls that came between the reports and were only counted.
    private(set) var repeats = 0
    /// The reports' durations, in milliseconds, in the order they were added.
    private(set) var durations: [Double] = []
    private(set) var firstSeen = Timestamp(microsecondsSince1970: .max)
    private(set) var lastSeen = Timestamp(microsecondsSince1970: .min)
    /// The longest one.
    private(set) var longest: Longest?
    private var culprits = Tally<ReportSummary.Culprit>()
    private var causes = Tally<String>()
    private var loops = Tally<String>()

    /// The report with the longest stall.
    struct Longest: Sendable, Equatable {
        var id: String
        var origin: ReportOrigin
        var milliseconds: Double
    }

    init(fingerprint: String?) { self.fingerprint = fingerprint }

    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin) {
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
    }

    /// Stalls: the reported ones and those that were only counted.
    var count: Int { reports.addingReportingOverflow(repeats).partialValue }
    /// How long the reported ones took together.
    var totalMilliseconds: Double { durations.reduce(0, +) }
    /// How long the longest one took.
    var maximumMilliseconds: Double { longest?.milliseconds ?? 0 }
    /// What most of the time went to.
    var cause: String { causes.heaviest { $0 < $1 } ?? StallReport.CauseKind.unknown.rawValue }
    /// The function that most of the time is blamed on.
    var culprit: ReportSummary.Culprit? {
        culprits.heaviest { ($0.function, $0.file ?? "", $0.line ?? 0) < ($1.function, $1.file ?? "", $1.line ?? 0) }
    }
    /// The label of the loop that most of the time was lost on.
    var loop: String { loops.heaviest { $0 < $1 } ?? "" }
    /// How many loops it happened on.
    var loopCount: Int { loops.count }

    /// The shortest duration that the fraction `quantile` of the reported stalls does not go over (nearest rank).
    func milliseconds(quantile: Double) -> Double {
        guard !durations.isEmpty else { return 0 }
        let sorted = durations.sorted()
        let rank = Int((quantile * Double(sorted.count)).rounded(.up))
        return sorted[min(max(rank, 1), sorted.count) - 1]
    }
}

/// Adds up weights by value.
struct Tally<Value: Hashable & Sendable>: Sendable, Equatable {
    private var weights: [Value: Double] = [:]

    mutating func add(_ value: Value, _ weight: Double) { weights[value, default: 0] += weight }

    /// How many values there are.
    var count: Int { weights.count }

    /// The value with the largest weight; of equal ones the first by `order`, so that no run differs from another.
    func heaviest(by order: (Value, Value) -> Bool) -> Value? {
        weights.max { $0.value != $1.value ? $0.value < $1.value : order($1.key, $0.key) }?.key
    }
}
