import StallReports
import ArgumentParser

/// Which stalls cost most: groups of those that are the same.
struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Group stalls that are the same and say what each costs.",
        discussion: """
            Stalls are the same when they have the same fingerprint: the same path through the app's own functions. The count has \
            the stalls in it that were too alike to be reported; total, p50, p95 and max are those of the reported ones.

            Examples:
              stallwatch top stalls
              stallwatch top stalls --sort p95 --limit 5
              stallwatch top stalls --since 2026-11-21 --process notes --json
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(
        help: ArgumentHelp(
            "Sort by total, count, p50, p95, max or last (the time of the last one).", valueName: "column"))
    var sort = StallGroups.Order.total

    // Unconditional, so that -1 is a value with something wrong and not an unknown option.
    @Option(parsing: .unconditional, help: ArgumentHelp("Show this many groups. Default: all.", valueName: "count"))
    var limit: Int?

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("The value '\(limit)' of --limit is not positive.") }
    }

    func run() throws {
        var groups = StallGroups()
        try selection.read().forEachSummary { groups.add($0, $1) }
        let sorted = Array(groups.sorted(by: sort).prefix(limit ?? .max))
        if json {
            try StandardOutput.write(JSONOutput.bytes(TopReport(groups, shown: sorted)))
        } else {
            try StandardOutput.write(Self.text(groups, shown: sorted, for: .standardOutput))
        }
    }

    /// The table, with a sentence below it.
    static func text(_ groups: StallGroups, shown: [StallGroup], for terminal: Terminal) -> String {
        guard !shown.isEmpty else { return "No report matches.\n" }
        var table = TextTable([
            .init("count", .right), .init("total", .right), .init("p50", .right, dropped: 1),
            .init("p95", .right, dropped: 5), .init("max", .right), .init("cause"),
            .init("culprit", isFlexible: true, style: .bold), .init("where", isFlexible: true, dropped: 3),
            .init("loop", isFlexible: true, dropped: 2), .init("fingerprint", dropped: 4, style: .faint),
        ])
        for group in shown {
            let culprit = group.culprit
            let place = culprit?.file.map { file in
                fileName(file) + (culprit?.line.map { ":\($0)" } ?? "")
            }
            let others = group.loopCount > 1 ? " +\(group.loopCount - 1)" : ""
            table.add([
                String(group.count), group.totalMilliseconds.duration, group.milliseconds(quantile: 0.5).duration,
                group.milliseconds(quantile: 0.95).duration, group.maximumMilliseconds.duration, group.cause,
                culprit?.function ?? "-", place ?? culprit?.image ?? "-", group.loop + others, group.fingerprint ?? "-",
            ])
        }
        var end = "\(counted(groups.count, "stall", "stalls")) in \(counted(groups.all.count, "group", "groups"))"
        end += ", \(groups.totalMilliseconds.duration) in \(counted(groups.reports, "report", "reports"))"
        if shown.count < groups.all.count { end += "; \(shown.count) of the groups are shown" }
        return table.text(for: terminal) + "\n" + end + ".\n"
    }
}

extension StallGroups.Order: ExpressibleByArgument {}

/// The part of a path behind its last slash.
func fileName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

/// What `top --json` prints.
struct TopReport: Encodable {
    /// Reports that were read and wanted.
    let reports: Int
    /// Stalls, with those that were only counted.
    let count: Int
    let totalMilliseconds: Double
    /// Groups that there are; `--limit` may leave some out.
    let groupCount: Int
    let groups: [Group]

    struct Group: Encodable {
        let fingerprint: String?
        let count: Int
        let reports: Int
        let repeats: Int
        let totalMilliseconds: Double
        let p50Milliseconds: Double
        let p95Milliseconds: Double
        let maxMilliseconds: Double
        let cause: String
        let culprit: Culprit?
        let loop: String
        let firstSeen: Timestamp
        let lastSeen: Timestamp
        let longest: Longest?
    }

    struct Culprit: Encodable {
        let function: String
        let image: String?
        let file: String?
        let line: Int?
    }

    struct Longest: Encodable {
        let id: String
        let path: String
        let line: Int?
    }

    init(_ groups: StallGroups, shown: [StallGroup]) {
        reports = groups.reports
        count = groups.count
        totalMilliseconds = groups.totalMilliseconds.toMicroseconds
        groupCount = groups.all.count
        self.groups = shown.map(Group.init)
    }
}

extension TopReport.Group {
    init(_ group: StallGroup) {
        self.init(
            fingerprint: group.fingerprint, count: group.count, reports: group.reports, repeats: group.repeats,
            totalMilliseconds: group.totalMilliseconds.toMicroseconds,
            p50Milliseconds: group.milliseconds(quantile: 0.5), p95Milliseconds: group.milliseconds(quantile: 0.95),
            maxMilliseconds: group.maximumMilliseconds, cause: group.cause,
            culprit: group.culprit.map {
                TopReport.Culprit(function: $0.function, image: $0.image, file: $0.file, line: $0.line)
            },
            loop: group.loop, firstSeen: group.firstSeen, lastSeen: group.lastSeen,
            longest: group.longest.map {
                TopReport.Longest(id: $0.id, path: $0.origin.path, line: $0.origin.line)
            }
        )
    }
}
