/// Two sets of reports beside each other.
struct Comparison {
    let base: ReportSet
    let new: ReportSet
    /// What is bad first, and of each the largest change first.
    let changes: [GroupChange]

    init(base: ReportSet, new: ReportSet, tolerance: Double) {
        self.base = base
        self.new = new
        let fingerprints = Set(base.groups.all.map(\.fingerprint)).union(new.groups.all.map(\.fingerprint))
        let order: [GroupChange.Kind] = [.new, .worse, .better, .gone, .same]
        changes = fingerprints.compactMap { fingerprint in
            GroupChange(
                base: base.groups[fingerprint], new: new.groups[fingerprint], baseHours: base.time.hours,
                newHours: new.time.hours, tolerance: tolerance
            )
        }.sorted { left, right in
            guard left.verdict == right.verdict else {
                return (order.firstIndex(of: left.verdict) ?? 0) < (order.firstIndex(of: right.verdict) ?? 0)
            }
            if left.weight != right.weight { return left.weight > right.weight }
            return (left.group.fingerprint ?? "") < (right.group.fingerprint ?? "")
        }
    }

    func count(of verdict: GroupChange.Kind) -> Int { changes.count { $0.verdict == verdict } }

    /// The comparison for people.
    func text(for terminal: Terminal, showsSame: Bool) -> String {
        var table = TextTable([
            .init("change"), .init("stalls/h", .right), .init("stalled/h", .right), .init("median", .right, dropped: 2),
            .init("cause"), .init("culprit", isFlexible: true, style: .bold),
            .init("fingerprint", dropped: 1, style: .faint),
        ])
        for change in changes where showsSame || change.verdict != .same {
            table.add([
                change.verdict.rawValue,
                Self.pair(change, \.countPerHour) { $0.fixed(2) },
                Self.pair(change, \.millisecondsPerHour) { $0.duration },
                Self.pair(change, \.medianMilliseconds) { $0.duration },
                change.group.cause, change.group.culprit?.function ?? "-", change.group.fingerprint ?? "-",
            ])
        }
        let counts = GroupChange.Kind.allCases.map { "\(count(of: $0)) \($0.rawValue)" }.joined(separator: ", ")
        let shown = table.rows.isEmpty ? "" : table.text(for: terminal) + "\n"
        return "\(shown)\(counts).\nMonitored: \(Self.words(base.time)) before, \(Self.words(new.time)) now.\n"
    }

    private static func pair(
        _ change: GroupChange, _ value: (GroupChange.Side) -> Double, _ words: (Double) -> String
    ) -> String {
        switch change.verdict {
        case .new: words(value(change.new))
        case .gone: words(value(change.base))
        default: "\(words(value(change.base))) → \(words(value(change.new)))"
        }
    }

    private static func words(_ time: MonitoredTime) -> String {
        let duration = (time.hours * 3_600_000).duration
        switch time.source {
        case .given: return duration
        case .statistics: return "\(duration) by the statistics"
        case .reports: return "at least \(duration) by the reports"
        }
    }
}

/// What `diff --json` prints.
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
                change: change.verdict, fingerprint: change.group.fingerprint, cause: change.group.cause,
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
