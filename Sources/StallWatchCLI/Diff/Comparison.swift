import TextOutput

struct Comparison: Encodable {
    let base: ReportSet
    let new: ReportSet
    /// Sorted: bad changes first, what is more than chance before the rest, then the largest change first.
    let changes: [GroupChange]
    /// The changes of each kind that are more than chance.
    private let counts: [String: Int]

    init(base: ReportSet, new: ReportSet, tolerance: Double) {
        self.base = base
        self.new = new
        let fingerprints = Set(base.groups.all.map(\.fingerprint)).union(new.groups.all.map(\.fingerprint))
        let changes = fingerprints.compactMap { fingerprint in
            GroupChange(
                base: base.groups[fingerprint], new: new.groups[fingerprint], baseHours: base.time.hours,
                newHours: new.time.hours, tolerance: tolerance,
                isTimeKnown: base.isTimeKnown && new.isTimeKnown
            )
        }
        let order: [GroupChange.Direction] = [.new, .worse, .better, .gone, .same]
        self.changes = changes.sorted {
            (order.firstIndex(of: $0.kind) ?? 0, $0.mayBeChance ? 1 : 0, $1.weight, $0.group.fingerprint ?? "")
                < (order.firstIndex(of: $1.kind) ?? 0, $1.mayBeChance ? 1 : 0, $0.weight, $1.group.fingerprint ?? "")
        }
        counts = Dictionary(
            uniqueKeysWithValues: GroupChange.Direction.allCases.map { kind in
                (kind.rawValue, changes.count { $0.kind == kind && !$0.mayBeChance })
            })
    }

    func count(of kind: GroupChange.Direction) -> Int { counts[kind.rawValue] ?? 0 }

    func text(for terminal: Terminal, showsSame: Bool) -> String {
        var table = TextTable([
            .init("change"), .init("stalls", .right, dropped: 2), .init("stalls/h", .right), .init("stalled/h", .right),
            .init("median", .right, dropped: 1),
            .init("cause"), .init("culprit", isFlexible: true, minimumWidth: 20, style: .bold),
            .init("fingerprint", dropped: 3, style: .faint),
        ])
        // The last lines are those above the prompt.
        for change in changes.reversed() where showsSame || change.kind != .same {
            table.add(
                [
                    change.word, Self.pair(change, \.count) { String($0) },
                    Self.pair(change, \.countPerHour) { $0.fixed(2) },
                    Self.pair(change, \.millisecondsPerHour) { $0.duration },
                    Self.pair(change, \.medianMilliseconds) { $0.duration },
                    change.group.cause, change.group.culprit?.function ?? "-",
                    change.group.fingerprint.map { String($0.prefix(8)) } ?? "-",
                ], style: change.mayBeChance ? nil : Self.styles[change.kind])
        }
        let shown = table.rows.isEmpty ? "" : table.text(for: terminal) + "\n"
        return shown + conclusion.map { $0.wrapped(to: terminal.width, indentation: "  ") + "\n" }.joined()
    }

    var conclusion: [String] {
        let counts = GroupChange.Direction.allCases.map { "\(count(of: $0)) \($0.rawValue)" }.joined(separator: ", ")
        let counted = [base, new].map { StallWatchCLI.counted(reports: $0.groups.reports, ofStalls: $0.groups.count) }
        let chance = changes.count(where: \.mayBeChance)
        return [
            "\(counts)\(chance > 0 ? "; \(chance) with a ? may be chance" : "").",
            "Before: \(counted[0]), monitored \(Self.words(base)). Now: \(counted[1]), monitored \(Self.words(new)).",
        ]
    }

    private static let styles: [GroupChange.Direction: Terminal.Style] = [
        .new: .red, .worse: .red, .better: .green, .gone: .green,
    ]

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
        set.isTimeKnown ? set.time.words : "for an unknown time"
    }

    func markdown(showsSame: Bool) -> String {
        let shown = changes.filter { showsSame || $0.kind != .same }
        let rows = shown.map { change in
            [
                ["new", "worse"].contains(change.word) ? "**\(change.word)**" : change.word,
                Self.pair(change, \.count) { String($0) },
                Self.pair(change, \.millisecondsPerHour) { $0.duration },
                Self.pair(change, \.medianMilliseconds) { $0.duration }, MarkdownText.prose(change.group.cause),
                change.group.culprit.map { MarkdownText.codeCell($0.function) } ?? "-",
                change.group.fingerprint.map(MarkdownText.codeCell) ?? "-",
            ]
        }
        let titles = ["change", "stalls", "stalled/h", "median", "cause", "culprit", "fingerprint"]
        let table = rows.isEmpty ? "" : MarkdownText.table(titles, right: [1, 2, 3], rows) + "\n"
        return table + conclusion.map { MarkdownText.prose($0) + "\n" }.joined(separator: "\n")
    }
}

/// The change of a group of stalls between two sets of reports, per hour of monitored time.
struct GroupChange: Encodable, Sendable {
    enum Direction: String, CaseIterable, Encodable, Sendable {
        case new, worse, same, better, gone
    }

    struct Side: Sendable, Equatable, Encodable {
        var count = 0
        var totalMilliseconds = 0.0
        var medianMilliseconds = 0.0
        var hours = 1.0

        var countPerHour: Double { Double(count) / hours }
        var millisecondsPerHour: Double { totalMilliseconds / hours }

        private enum CodingKeys: CodingKey {
            case count, countPerHour, totalMilliseconds, millisecondsPerHour, medianMilliseconds
        }

        func encode(to encoder: any Encoder) throws {
            var fields = encoder.container(keyedBy: CodingKeys.self)
            try fields.encode(count, forKey: .count)
            try fields.encode(countPerHour, forKey: .countPerHour)
            try fields.encode(totalMilliseconds.toMicroseconds, forKey: .totalMilliseconds)
            try fields.encode(millisecondsPerHour, forKey: .millisecondsPerHour)
            try fields.encode(medianMilliseconds, forKey: .medianMilliseconds)
        }
    }

    let group: StallGroup
    let base: Side
    let new: Side
    let kind: Direction
    /// Whether the group is on one side only, and too rare to be expected on the other: the rule of ``VersionHistory``.
    let mayBeChance: Bool

    /// Compares a group before with the same one now; rates that differ by up to `tolerance`, a share, are the same.
    ///
    /// Where it is not known how long a side was monitored, both count as equally long.
    init?(
        base: StallGroup?, new: StallGroup?, baseHours: Double, newHours: Double, tolerance: Double, isTimeKnown: Bool
    ) {
        guard let group = new ?? base else { return nil }
        self.group = group
        self.base = Side(base, hours: baseHours)
        self.new = Side(new, hours: newHours)
        kind =
            if base == nil {
                .new
            } else if new == nil {
                .gone
            } else if Self.isMore(self.new, than: self.base, tolerance: tolerance) {
                .worse
            } else if Self.isMore(self.base, than: self.new, tolerance: tolerance) {
                .better
            } else {
                .same
            }
        let (seen, other) = base == nil ? (self.new, self.base) : (self.base, self.new)
        let expected = isTimeKnown ? seen.countPerHour * other.hours : Double(seen.count)
        mayBeChance = (base == nil || new == nil) && expected < VersionHistory.enoughStalls
    }

    /// The kind, with a question mark if it may be chance.
    var word: String { kind.rawValue + (mayBeChance ? "?" : "") }

    /// Whether each stall takes longer, or there are more stalls by over two standard deviations: the count of
    /// independent events varies by its square root.
    static func isMore(_ left: Side, than right: Side, tolerance: Double) -> Bool {
        let factor = 1 + tolerance
        guard left.millisecondsPerHour > right.millisecondsPerHour * factor else { return false }
        if left.medianMilliseconds > right.medianMilliseconds * factor { return true }
        let scale = left.hours / right.hours
        let expected = Double(right.count) * scale
        let deviation = (Double(left.count) + expected * scale).squareRoot()
        return Double(left.count) - expected > 2 * deviation
    }

    var weight: Double { abs(new.millisecondsPerHour - base.millisecondsPerHour) }

    private enum CodingKeys: CodingKey { case change, mayBeChance, fingerprint, cause, culprit, base, new }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(kind, forKey: .change)
        try fields.encode(mayBeChance, forKey: .mayBeChance)
        try fields.encodeIfPresent(group.fingerprint, forKey: .fingerprint)
        try fields.encode(group.cause, forKey: .cause)
        try fields.encodeIfPresent(group.culprit?.function, forKey: .culprit)
        try fields.encode(base, forKey: .base)
        try fields.encode(new, forKey: .new)
    }
}

extension GroupChange.Side {
    init(_ group: StallGroup?, hours: Double) {
        self.init(
            count: group?.count ?? 0, totalMilliseconds: group?.totalMilliseconds ?? 0,
            medianMilliseconds: group?.milliseconds(quantile: 0.5) ?? 0, hours: hours
        )
    }
}

extension Finding {
    init(_ change: GroupChange, failing: [GroupChange.Direction]) {
        self.init(change.group)
        let sides = [("before", change.base), ("now", change.new)].map { name, side in
            "\(name) \(counted(side.count, "stall", "stalls")), \(side.millisecondsPerHour.duration) an hour"
        }
        title = "\(change.word): \(title)"
        message = sides.joined(separator: "; ") + "." + (change.group.explanation.map { "\n" + $0 } ?? "")
        switch change.kind {
        case _ where failing.contains(change.kind) && !change.mayBeChance: severity = .error
        case .new, .worse: severity = .warning
        case .same, .better, .gone: severity = .passed
        }
    }
}
