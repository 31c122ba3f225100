import StallReports
import TextOutput

/// The output of `top --history`: since when stalls are known, in which versions, and how often.
struct HistoryTable {
    struct Row {
        let group: StallGroup
        let change: VersionHistory.Change?
        /// The versions that have the stall, the oldest first.
        let versions: [String]
        let rate: HourlyRate
    }

    let rows: [Row]
    /// The groups that are not shown.
    let omitted: Int
    let versions: [VersionHistory.Version]
    let time: MonitoredTime

    init(_ groups: [StallGroup], limit: Int, history: VersionHistory, time: MonitoredTime) {
        let versions = history.versions
        self.versions = versions
        self.time = time
        omitted = max(groups.count - limit, 0)
        rows = groups.prefix(limit).map { group in
            let counts = history.counts(of: group.fingerprint, in: versions)
            return Row(
                group: group, change: VersionHistory.change(counts, versions),
                versions: zip(versions, counts).filter { $0.1 > 0 }.map(\.0.name),
                rate: HourlyRate(count: group.count, hours: time.hours))
        }
    }

    func text(for terminal: Terminal) -> String {
        var table = TextTable([
            .init("change"), .init("count", .right, dropped: 3), .init("stalls/h", .right),
            .init("95 %", dropped: 4), .init("first (UTC)", dropped: 5), .init("last (UTC)"),
            .init("versions", isFlexible: true, minimumWidth: 12, keepsEnds: true),
            .init("culprit", isFlexible: true, minimumWidth: 20, style: .bold),
            .init("where", isFlexible: true, minimumWidth: 18, keepsEnds: true, dropped: 2),
            .init("id", style: .faint),
        ])
        for row in rows {
            let group = row.group
            let place = group.culprit.flatMap { culprit in culprit.file.map { sourcePlace($0, culprit.line) } }
            table.add(
                [
                    row.change?.rawValue ?? "", String(group.count), row.rate.words, row.rate.interval,
                    group.firstSeen.dayAndMinute,
                    group.lastSeen.dayAndMinute, Self.words(row.versions), group.culprit?.function ?? "-",
                    place ?? group.culprit?.image ?? "-", group.fingerprint.map { String($0.prefix(8)) } ?? "-",
                ], style: row.change.map { $0 == .gone ? .green : .red })
        }
        let lines = ["", changes, basis]
        return table.text(for: terminal)
            + lines.map { $0.wrapped(to: terminal.width, indentation: "  ") + "\n" }.joined()
    }

    /// "1.2–1.4 (3)"; a version alone; "-" without any.
    private static func words(_ versions: [String]) -> String {
        guard let first = versions.first, let last = versions.last else { return "-" }
        return versions.count == 1 ? first : "\(first)–\(last) (\(versions.count))"
    }

    private var changes: String {
        let more = omitted > 0 ? "…and \(omitted) more: --limit \(rows.count + omitted) shows all. " : ""
        guard let newest = versions.last, versions.count > 1 else {
            return more + "Nothing to compare with: fewer than two versions, which metadata[\"version\"] of the "
                + "configuration sets."
        }
        let counts = VersionHistory.Change.allCases.map { change in
            "\(rows.count { $0.change == change }) \(change.rawValue)"
        }
        return more
            + "\(counts.joined(separator: ", ")) in version \(newest.name.printable), the newest of \(versions.count)."
    }

    private var basis: String { "Rates are per hour of monitored time: \(time.words)." }
}

/// The output of `top --history --json`.
struct HistoryReport: Encodable {
    let hours: Double
    let hoursFrom: MonitoredTime.Source
    /// In the order in which their first processes started.
    let versions: [VersionHistory.Version]
    let groups: [DatedGroup]

    struct DatedGroup: Encodable {
        let fingerprint: String?
        let culprit: ReportSummary.Culprit?
        let cause: String
        let change: VersionHistory.Change?
        let count: Int
        let rate: HourlyRate
        let firstSeen: Timestamp
        let lastSeen: Timestamp
        let versions: [String]
    }

    init(_ table: HistoryTable) {
        hours = table.time.hours
        hoursFrom = table.time.source
        versions = table.versions
        groups = table.rows.map { row in
            DatedGroup(
                fingerprint: row.group.fingerprint, culprit: row.group.culprit, cause: row.group.cause,
                change: row.change, count: row.group.count, rate: row.rate, firstSeen: row.group.firstSeen,
                lastSeen: row.group.lastSeen, versions: row.versions)
        }
    }
}
