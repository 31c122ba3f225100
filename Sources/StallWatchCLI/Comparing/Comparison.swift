import TextOutput

/// Two sets of reports, compared group by group.
struct Comparison {
    let base: ReportSet
    let new: ReportSet
    /// Sorted: bad changes first, and within a kind the largest change first.
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
            guard left.kind == right.kind else {
                return (order.firstIndex(of: left.kind) ?? 0) < (order.firstIndex(of: right.kind) ?? 0)
            }
            if left.weight != right.weight { return left.weight > right.weight }
            return (left.group.fingerprint ?? "") < (right.group.fingerprint ?? "")
        }
    }

    func count(of kind: GroupChange.Kind) -> Int { changes.count { $0.kind == kind } }

    /// The text.
    func text(for terminal: Terminal, showsSame: Bool) -> String {
        var table = TextTable([
            .init("change"), .init("stalls", .right, dropped: 2), .init("stalls/h", .right), .init("stalled/h", .right),
            .init("median", .right, dropped: 1),
            .init("cause"), .init("culprit", isFlexible: true, minimumWidth: 20, style: .bold),
            .init("fingerprint", dropped: 3, style: .faint),
        ])
        for change in changes where showsSame || change.kind != .same {
            table.add(
                [
                    change.kind.rawValue, Self.pair(change, \.count) { String($0) },
                    Self.pair(change, \.countPerHour) { $0.fixed(2) },
                    Self.pair(change, \.millisecondsPerHour) { $0.duration },
                    Self.pair(change, \.medianMilliseconds) { $0.duration },
                    change.group.cause, change.group.culprit?.function ?? "-",
                    change.group.fingerprint.map { String($0.prefix(8)) } ?? "-",
                ], style: Self.style(of: change.kind))
        }
        let shown = table.rows.isEmpty ? "" : table.text(for: terminal) + "\n"
        return shown + conclusion.map { $0 + "\n" }.joined()
    }

    /// The number of changes, the basis of the rates, and a warning where there is too little of it: a line each.
    var conclusion: [String] {
        let counts = GroupChange.Kind.allCases.map { "\(count(of: $0)) \($0.rawValue)" }.joined(separator: ", ")
        let counted = [base, new].map { StallWatchCLI.counted($0.groups.count, "stall", "stalls") }
        var lines = [
            "\(counts).",
            "Before: \(counted[0]), monitored \(Self.words(base)). Now: \(counted[1]), monitored \(Self.words(new)).",
        ]
        if max(base.groups.count, new.groups.count) < Self.enoughStalls {
            lines.append("Too little to compare: with fewer than \(Self.enoughStalls) stalls, changes may be chance.")
        }
        return lines
    }

    /// With fewer stalls on both sides, a count has to triple to be more than chance.
    private static let enoughStalls = 10

    private static func style(of kind: GroupChange.Kind) -> Terminal.Style? {
        switch kind {
        case .new, .worse: .red
        case .better, .gone: .green
        case .same: nil
        }
    }

    /// The values of both sides in words; of the only side, if the group is new or gone.
    static func pair<Value>(
        _ change: GroupChange, _ value: (GroupChange.Side) -> Value, _ words: (Value) -> String
    ) -> String {
        switch change.kind {
        case .new: words(value(change.new))
        case .gone: words(value(change.base))
        default: "\(words(value(change.base))) → \(words(value(change.new)))"
        }
    }

    private static func words(_ set: ReportSet) -> String {
        let duration = (set.time.hours * 3_600_000).duration
        switch set.time.source {
        case .reports where set.groups.reports == 0: return "for an unknown time"
        case .given: return duration
        case .statistics: return "\(duration) by the statistics"
        case .reports: return "at least \(duration) by the reports"
        }
    }
}
