import StallReports

/// Reports in groups.
struct StallGroups: Sendable {
    private var groups: [String?: StallGroup] = [:]

    private let grouping: Grouping

    init(by grouping: Grouping = .fingerprint) { self.grouping = grouping }

    /// Adds a report to its group; `caller` is the caller of its culprit, if it was looked up.
    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin, caller: String? = nil) {
        let key = grouping.key(report, caller)
        groups[key, default: StallGroup(key: key)].add(report, origin, caller: caller)
    }

    /// The groups in no order.
    var all: [StallGroup] { Array(groups.values) }

    subscript(key: String?) -> StallGroup? { groups[key] }

    /// Reports over all groups.
    var reports: Int { groups.values.reduce(0) { $0 + $1.reports } }
    /// Stalls over all groups, including repeats.
    var count: Int { groups.values.reduce(0) { $0.addingReportingOverflow($1.count).partialValue } }
    /// The sum of the reported durations.
    var totalMilliseconds: Double { groups.values.reduce(0) { $0 + $1.totalMilliseconds } }

    /// The groups, worst first.
    func sorted(by order: Order) -> [StallGroup] {
        let keyed = groups.values.map { (key: order.key($0), group: $0) }
        return keyed.sorted {
            if $0.key != $1.key { return $0.key > $1.key }
            if $0.group.totalMilliseconds != $1.group.totalMilliseconds {
                return $0.group.totalMilliseconds > $1.group.totalMilliseconds
            }
            return ($0.group.key ?? "") < ($1.group.key ?? "")
        }.map(\.group)
    }

    /// The value that equal stalls share.
    enum Grouping: String, CaseIterable, Sendable {
        case fingerprint, culprit, cause, loop, caller, context

        fileprivate func key(_ report: ReportSummary, _ caller: String?) -> String? {
            switch self {
            case .fingerprint: report.fingerprint
            case .culprit: report.culprit?.function
            case .cause: report.cause?.rawValue
            case .loop: report.loop
            case .caller: caller
            case .context: report.context
            }
        }
    }

    /// The column that groups are sorted by.
    enum Order: String, CaseIterable, Sendable {
        case total, count, p50, p95, max, last

        fileprivate func key(_ group: StallGroup) -> Double {
            switch self {
            case .total: group.totalMilliseconds
            case .count: Double(group.count)
            case .p50: group.milliseconds(quantile: 0.5)
            case .p95: group.milliseconds(quantile: 0.95)
            case .max: group.maximumMilliseconds
            case .last: Double(group.lastSeen.microsecondsSince1970)
            }
        }
    }
}
