import StallReports

/// The output of `top --json`.
struct TopReport: Encodable {
    /// Reports that passed the filters.
    let reports: Int
    /// Stalls, including repeats that were not reported.
    let count: Int
    let totalMilliseconds: Double
    /// All groups, including those that `--limit` leaves out.
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
        /// The caller of the culprit.
        let caller: String?
        let loop: String
        /// The context of most of the time.
        let context: String?
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
            caller: group.caller, loop: group.loop, context: group.context, firstSeen: group.firstSeen,
            lastSeen: group.lastSeen,
            longest: group.longest.map {
                TopReport.Longest(id: $0.id, path: $0.origin.path, line: $0.origin.line)
            }
        )
    }
}
