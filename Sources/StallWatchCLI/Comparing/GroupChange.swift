/// The change of a group of stalls between two sets of reports, per hour of monitored time.
struct GroupChange: Sendable {
    enum Kind: String, CaseIterable, Encodable, Sendable {
        case new, worse, same, better, gone
    }

    /// The group's numbers on one side.
    struct Side: Sendable, Equatable {
        var count = 0
        var totalMilliseconds = 0.0
        var medianMilliseconds = 0.0
        var hours = 1.0

        var countPerHour: Double { Double(count) / hours }
        var millisecondsPerHour: Double { totalMilliseconds / hours }
    }

    let group: StallGroup
    let base: Side
    let new: Side
    let kind: Kind

    /// Compares a group before with the same group now; `nil` if both are missing.
    ///
    /// `tolerance` is the share by which a rate may differ and still count as the same.
    init?(base: StallGroup?, new: StallGroup?, baseHours: Double, newHours: Double, tolerance: Double) {
        guard let group = new ?? base else { return nil }
        self.group = group
        self.base = Side(base, hours: baseHours)
        self.new = Side(new, hours: newHours)
        if base == nil {
            kind = .new
        } else if new == nil {
            kind = .gone
        } else if Self.isMore(self.new, than: self.base, tolerance: tolerance) {
            kind = .worse
        } else if Self.isMore(self.base, than: self.new, tolerance: tolerance) {
            kind = .better
        } else {
            kind = .same
        }
    }

    /// Whether `left` loses more time per hour than `right`, beyond chance.
    ///
    /// Either each stall takes longer, or there are more stalls by over two standard deviations. The count of independent
    /// events varies by its square root.
    static func isMore(_ left: Side, than right: Side, tolerance: Double) -> Bool {
        let factor = 1 + tolerance
        guard left.millisecondsPerHour > right.millisecondsPerHour * factor else { return false }
        if left.medianMilliseconds > right.medianMilliseconds * factor { return true }
        let scale = left.hours / right.hours
        let expected = Double(right.count) * scale
        let deviation = (Double(left.count) + expected * scale).squareRoot()
        return Double(left.count) - expected > 2 * deviation
    }

    /// The difference in time lost per hour, for sorting.
    var weight: Double { abs(new.millisecondsPerHour - base.millisecondsPerHour) }
}

extension GroupChange.Side {
    init(_ group: StallGroup?, hours: Double) {
        self.init(
            count: group?.count ?? 0, totalMilliseconds: group?.totalMilliseconds ?? 0,
            medianMilliseconds: group?.milliseconds(quantile: 0.5) ?? 0, hours: hours
        )
    }
}
