import StallReports
import TextOutput

struct HistoryTable: Encodable {
    struct Row: Encodable {
        let fingerprint: String?
        let culprit: ReportSummary.Culprit?
        let cause: String
        let change: VersionHistory.Change?
        let count: Int
        let rate: HourlyRate
        let firstSeen: Timestamp
        let lastSeen: Timestamp
        /// The versions that have the stall, the oldest first.
        let versions: [String]
    }

    let rows: [Row]
    let omitted: Int
    let versions: [VersionHistory.Version]
    let time: MonitoredTime
    /// How many groups changed, also of those without a row.
    private let changeCounts: [VersionHistory.Change: Int]

    init(_ groups: [StallGroup], limit: Int, history: VersionHistory, time: MonitoredTime) {
        let versions = history.versions
        self.versions = versions
        self.time = time
        omitted = max(groups.count - limit, 0)
        let all = groups.map { group in
            let counts = history.counts(of: group.fingerprint, in: versions)
            return Row(
                fingerprint: group.fingerprint, culprit: group.culprit, cause: group.cause,
                change: VersionHistory.change(counts, versions), count: group.count,
                rate: HourlyRate(count: group.count, hours: time.hours), firstSeen: group.firstSeen,
                lastSeen: group.lastSeen, versions: zip(versions, counts).filter { $0.1 > 0 }.map(\.0.name))
        }
        rows = Array(all.prefix(limit))
        changeCounts = Dictionary(grouping: all.compactMap(\.change)) { $0 }.mapValues(\.count)
    }

    private enum CodingKeys: CodingKey { case versions, groups }

    func encode(to encoder: any Encoder) throws {
        try time.encode(to: encoder)
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(versions, forKey: .versions)
        try fields.encode(rows, forKey: .groups)
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
            let place = row.culprit.flatMap { culprit in culprit.file.map { sourcePlace($0, culprit.line) } }
            table.add(
                [
                    row.change?.rawValue ?? "", String(row.count), row.rate.words, row.rate.interval,
                    row.firstSeen.dayAndMinute, row.lastSeen.dayAndMinute, Self.words(row.versions),
                    row.culprit?.function ?? "-", place ?? row.culprit?.image ?? "-",
                    row.fingerprint.map { String($0.prefix(8)) } ?? "-",
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
        let counts = VersionHistory.Change.allCases.map { "\(changeCounts[$0] ?? 0) \($0.rawValue)" }
        return more
            + "\(counts.joined(separator: ", ")) in version \(newest.name.printable), the newest of \(versions.count)."
    }

    private var basis: String { "Rates are per hour of monitored time: \(time.words)." }
}
