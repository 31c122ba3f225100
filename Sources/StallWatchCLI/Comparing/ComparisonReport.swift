/// The output of `diff --json`.
struct ComparisonReport: Encodable {
    let base: Side
    let new: Side
    let counts: [String: Int]
    let changes: [Change]

    struct Side: Encodable {
        let hours: Double
        let hoursFrom: MonitoredTime.Source
        let reports: Int
        let count: Int
        let totalMilliseconds: Double
    }

    struct Change: Encodable {
        let change: GroupChange.Kind
        let fingerprint: String?
        let cause: String
        let culprit: String?
        let base: Numbers
        let new: Numbers
    }

    struct Numbers: Encodable {
        let count: Int
        let countPerHour: Double
        let totalMilliseconds: Double
        let millisecondsPerHour: Double
        let medianMilliseconds: Double
    }

    init(_ comparison: Comparison) {
        base = Side(comparison.base)
        new = Side(comparison.new)
        counts = Dictionary(
            uniqueKeysWithValues: GroupChange.Kind.allCases.map { ($0.rawValue, comparison.count(of: $0)) }
        )
        changes = comparison.changes.map { change in
            Change(
                change: change.kind, fingerprint: change.group.fingerprint, cause: change.group.cause,
                culprit: change.group.culprit?.function, base: Numbers(change.base), new: Numbers(change.new)
            )
        }
    }
}

extension ComparisonReport.Side {
    fileprivate init(_ set: ReportSet) {
        self.init(
            hours: set.time.hours, hoursFrom: set.time.source, reports: set.groups.reports, count: set.groups.count,
            totalMilliseconds: set.groups.totalMilliseconds.toMicroseconds
        )
    }
}

extension ComparisonReport.Numbers {
    fileprivate init(_ side: GroupChange.Side) {
        self.init(
            count: side.count, countPerHour: side.countPerHour,
            totalMilliseconds: side.totalMilliseconds.toMicroseconds,
            millisecondsPerHour: side.millisecondsPerHour, medianMilliseconds: side.medianMilliseconds
        )
    }
}
