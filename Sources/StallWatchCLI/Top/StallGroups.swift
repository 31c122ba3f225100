import StallReports

struct StallGroups: Sendable {
    private var groups: [String?: StallGroup] = [:]

    private let grouping: Grouping

    init(by grouping: Grouping = .fingerprint) { self.grouping = grouping }

    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin) {
        let key = grouping.key(report)
        groups[key, default: StallGroup(key: key)].add(report, origin)
    }

    var all: [StallGroup] { Array(groups.values) }

    subscript(key: String?) -> StallGroup? { groups[key] }

    var reports: Int { groups.values.reduce(0) { $0 + $1.reports } }
    var count: Int { groups.values.reduce(0) { $0 &+ $1.count } }
    var missed: Int { groups.values.reduce(0) { $0 + $1.missed } }
    var maximumMilliseconds: Double { groups.values.map(\.maximumMilliseconds).max() ?? 0 }
    var totalMilliseconds: Double { groups.values.reduce(0) { $0 + $1.totalMilliseconds } }

    func sorted(by order: Order) -> [StallGroup] {
        let keyed = groups.values.map { (key: order.key($0), group: $0) }
        return keyed.sorted {
            ($1.key, $1.group.totalMilliseconds, $0.group.key ?? "")
                < ($0.key, $0.group.totalMilliseconds, $1.group.key ?? "")
        }.map(\.group)
    }

    enum Grouping: String, CaseIterable, Sendable {
        case fingerprint, culprit, cause, loop, caller, context
        /// By fingerprint, those first for which others waited longest.
        case harm

        fileprivate func key(_ report: ReportSummary) -> String? {
            switch self {
            case .fingerprint, .harm: report.fingerprint
            case .culprit: report.culprit?.function
            case .cause: report.causeWord
            case .loop: report.loop
            case .caller: report.callers.first
            case .context: report.context
            }
        }
    }

    enum Order: String, CaseIterable, Sendable {
        case total, count, p50, p95, max, last, harm

        fileprivate func key(_ group: StallGroup) -> Double {
            switch self {
            case .total: group.totalMilliseconds
            case .count: Double(group.count)
            case .p50: group.milliseconds(quantile: 0.5)
            case .p95: group.milliseconds(quantile: 0.95)
            case .max: group.maximumMilliseconds
            case .last: Double(group.lastSeen.microsecondsSince1970)
            // What is not known comes after what waited, and before where nothing did.
            case .harm: group.harmMilliseconds ?? .leastNonzeroMagnitude
            }
        }
    }
}

struct StallGroup: Sendable, Equatable {
    /// `nil` for reports without one.
    let key: String?
    private(set) var reports = 0
    /// The reports of turns that were over when the watchdog looked.
    private(set) var missed = 0
    /// How long others waited for the loops, in milliseconds, where that is known; `nil` if no report says it.
    private(set) var harmMilliseconds: Double?
    /// Repeats that were counted and not reported.
    private(set) var repeats = 0
    private(set) var totalMilliseconds = 0.0
    private(set) var maximumMilliseconds = 0.0
    /// Whether a report does not say what the stalls lasted that it stands for.
    private(set) var isEstimated = false
    /// The reports' durations, in milliseconds, in the order they were added.
    private(set) var durations: [Double] = []
    private(set) var firstSeen = Timestamp(microsecondsSince1970: .max)
    private(set) var lastSeen = Timestamp(microsecondsSince1970: .min)
    private(set) var longest: Longest?
    /// That of the longest stall, if it was requested.
    private(set) var explanation: String?
    private var culprits = Tally<ReportSummary.Culprit>()
    private var causes = Tally<String>()
    /// The callers of the culprit in the first report for which they were looked up, the nearest first.
    private(set) var callers: [String] = []
    private var fingerprints: Set<String?> = []
    private var loops = Tally<String>()
    private var contexts = Tally<String>()

    struct Longest: Encodable, Sendable, Equatable {
        let id: String
        let path: String
        let line: Int?
        let milliseconds: Double

        private enum CodingKeys: CodingKey { case id, path, line }
    }

    init(key: String?) { self.key = key }

    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin) {
        fingerprints.insert(report.fingerprint)
        let weight = report.totalMilliseconds
        if callers.isEmpty { callers = report.callers }
        totalMilliseconds += weight
        maximumMilliseconds = max(maximumMilliseconds, report.greatestMilliseconds)
        isEstimated = isEstimated || report.isEstimated
        reports += 1
        if report.isMissed { missed += 1 }
        if let harm = report.harmMilliseconds {
            // What waited for the repeats is not known: as much for each millisecond.
            let share = report.durationMilliseconds > 0 ? weight / report.durationMilliseconds : 1
            harmMilliseconds = (harmMilliseconds ?? 0) + harm * share
        }
        repeats &+= report.repeats
        let milliseconds = report.durationMilliseconds
        durations.append(milliseconds)
        firstSeen = min(firstSeen, report.startedAt)
        lastSeen = max(lastSeen, report.startedAt)
        if longest.map({ milliseconds > $0.milliseconds }) ?? true {
            longest = Longest(id: report.id, path: origin.path, line: origin.line, milliseconds: milliseconds)
            explanation = report.explanation
        }
        if let culprit = report.culprit { culprits.add(culprit, weight) }
        causes.add(report.causeWord, weight)
        loops.add(report.loop, weight)
        if let context = report.context { contexts.add(context, weight) }
    }

    var count: Int { reports &+ repeats }
    var cause: String { causes.heaviest { $0 < $1 } ?? StallReport.CauseKind.unknown.rawValue }
    var culprit: ReportSummary.Culprit? {
        culprits.heaviest { ($0.function, $0.file ?? "", $0.line ?? 0) < ($1.function, $1.file ?? "", $1.line ?? 0) }
    }
    /// The fingerprint, if all stalls have the same.
    var fingerprint: String? { fingerprints.count == 1 ? fingerprints.first ?? nil : nil }
    /// The label of the loop that most of the time was lost on.
    var loop: String { loops.heaviest { $0 < $1 } ?? "" }
    var loopCount: Int { loops.count }
    /// The context of most of the time; `nil` if no stall has one.
    var context: String? { contexts.heaviest { $0 < $1 } }
    var contextCount: Int { contexts.count }

    /// The nearest-rank quantile of the reported durations.
    func milliseconds(quantile: Double) -> Double {
        guard !durations.isEmpty else { return 0 }
        let sorted = durations.sorted()
        let rank = Int((quantile * Double(sorted.count)).rounded(.up))
        return sorted[min(max(rank, 1), sorted.count) - 1]
    }
}

struct Tally<Value: Hashable & Sendable>: Sendable, Equatable {
    private var weights: [Value: Double] = [:]

    mutating func add(_ value: Value, _ weight: Double) { weights[value, default: 0] += weight }

    var count: Int { weights.count }

    /// The value with the largest weight; the first by `order` among equals, so that every run gives the same result.
    func heaviest(by order: (Value, Value) -> Bool) -> Value? {
        weights.max { $0.value != $1.value ? $0.value < $1.value : order($1.key, $0.key) }?.key
    }
}

extension Finding {
    init(_ group: StallGroup) {
        let total = group.totalMilliseconds.duration
        let stalls = counted(group.count, "stall", "stalls")
        let place = group.culprit.map { " in \($0.function)" } ?? ""
        self.init(
            severity: .warning, loop: group.loop, title: "\(total)\(place)",
            message:
                "\(stalls) of \(group.loop)\(place): \(total) in all, \(group.maximumMilliseconds.duration) at most."
                + (group.explanation.map { "\n" + $0 } ?? ""),
            cause: group.cause, file: group.culprit?.file, line: group.culprit?.line,
            milliseconds: group.totalMilliseconds
        )
    }
}
