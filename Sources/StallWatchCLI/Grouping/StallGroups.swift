import StallReports

/// Reports grouped by fingerprint.
struct StallGroups: Sendable {
    private var groups: [String?: StallGroup] = [:]

    init() {}

    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin) {
        groups[report.fingerprint, default: StallGroup(fingerprint: report.fingerprint)].add(report, origin)
    }

    /// The groups in no order.
    var all: [StallGroup] { Array(groups.values) }

    subscript(fingerprint: String?) -> StallGroup? { groups[fingerprint] }

    /// Reports over all groups.
    var reports: Int { groups.values.reduce(0) { $0 + $1.reports } }
    /// Stalls over all groups, with those that were only counted.
    var count: Int { groups.values.reduce(0) { $0.addingReportingOverflow($1.count).partialValue } }
    /// How long the reported stalls took together.
    var totalMilliseconds: Double { groups.values.reduce(0) { $0 + $1.totalMilliseconds } }

    /// The groups, worst first.
    func sorted(by order: Order) -> [StallGroup] {
        let keyed = groups.values.map { (key: order.key($0), group: $0) }
        return keyed.sorted {
            if $0.key != $1.key { return $0.key > $1.key }
            if $0.group.totalMilliseconds != $1.group.totalMilliseconds {
                return $0.group.totalMilliseconds > $1.group.totalMilliseconds
            }
            return ($0.group.fingerprint ?? "") < ($1.group.fingerprint ?? "")
        }.map(\.group)
    }

    /// By what groups are sorted.
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
