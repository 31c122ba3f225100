import Foundation
import StallReports

struct StallGroups: Sendable {
    private var groups: [String?: StallGroup] = [:]

    private let grouping: Grouping

    init(by grouping: Grouping = .fingerprint) { self.grouping = grouping }

    /// Adds a report to its group; `callers` are those of its culprit, the nearest first, if they were looked up.
    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin, callers: [String] = []) {
        let key = grouping.key(report, callers.first)
        groups[key, default: StallGroup(key: key)].add(report, origin, callers: callers)
    }

    /// The groups in no order.
    var all: [StallGroup] { Array(groups.values) }

    subscript(key: String?) -> StallGroup? { groups[key] }

    /// Reports over all groups.
    var reports: Int { groups.values.reduce(0) { $0 + $1.reports } }
    /// Stalls over all groups, including repeats.
    var count: Int { groups.values.reduce(0) { $0 &+ $1.count } }
    /// The sum of the durations of all stalls.
    var totalMilliseconds: Double { groups.values.reduce(0) { $0 + $1.totalMilliseconds } }

    func sorted(by order: Order) -> [StallGroup] {
        let keyed = groups.values.map { (key: order.key($0), group: $0) }
        return keyed.sorted {
            ($1.key, $1.group.totalMilliseconds, $0.group.key ?? "")
                < ($0.key, $0.group.totalMilliseconds, $1.group.key ?? "")
        }.map(\.group)
    }

    /// The value that equal stalls share.
    enum Grouping: String, CaseIterable, Sendable {
        case fingerprint, culprit, cause, loop, caller, context

        fileprivate func key(_ report: ReportSummary, _ caller: String?) -> String? {
            switch self {
            case .fingerprint: report.fingerprint
            case .culprit: report.culprit?.function
            case .cause: (report.cause ?? .unknown).rawValue
            case .loop: report.loop
            case .caller: caller
            case .context: report.context
            }
        }
    }

    /// The column that groups are sorted by.
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

/// Stalls that have the same key: a fingerprint, or another value that groups them.
struct StallGroup: Sendable, Equatable {
    /// `nil` for reports without one.
    let key: String?
    private(set) var reports = 0
    /// Repeats that were counted and not reported.
    private(set) var repeats = 0
    /// The sum of the durations of all stalls, in milliseconds.
    private(set) var totalMilliseconds = 0.0
    /// The longest duration of a stall, in milliseconds.
    private(set) var maximumMilliseconds = 0.0
    /// Whether a report does not say what the stalls lasted that it stands for.
    private(set) var isEstimated = false
    /// The reports' durations, in milliseconds, in the order they were added.
    private(set) var durations: [Double] = []
    private(set) var firstSeen = Timestamp(microsecondsSince1970: .max)
    private(set) var lastSeen = Timestamp(microsecondsSince1970: .min)
    /// The longest one that has a report.
    private(set) var longest: Longest?
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

    mutating func add(_ report: ReportSummary, _ origin: ReportOrigin, callers: [String] = []) {
        fingerprints.insert(report.fingerprint)
        let weight = report.totalMilliseconds
        if self.callers.isEmpty { self.callers = callers }
        totalMilliseconds += weight
        maximumMilliseconds = max(maximumMilliseconds, report.greatestMilliseconds)
        isEstimated = isEstimated || report.isEstimated
        reports += 1
        repeats &+= report.repeats
        let milliseconds = report.durationMilliseconds
        durations.append(milliseconds)
        firstSeen = min(firstSeen, report.startedAt)
        lastSeen = max(lastSeen, report.startedAt)
        if longest.map({ milliseconds > $0.milliseconds }) ?? true {
            longest = Longest(id: report.id, path: origin.path, line: origin.line, milliseconds: milliseconds)
        }
        if let culprit = report.culprit { culprits.add(culprit, weight) }
        causes.add((report.cause ?? .unknown).rawValue, weight)
        loops.add(report.loop, weight)
        if let context = report.context { contexts.add(context, weight) }
    }

    /// Stalls: reported ones and repeats.
    var count: Int { reports &+ repeats }
    /// The cause of most of the time.
    var cause: String { causes.heaviest { $0 < $1 } ?? StallReport.CauseKind.unknown.rawValue }
    /// The culprit of most of the time.
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

/// Adds up weights by value.
struct Tally<Value: Hashable & Sendable>: Sendable, Equatable {
    private var weights: [Value: Double] = [:]

    mutating func add(_ value: Value, _ weight: Double) { weights[value, default: 0] += weight }

    var count: Int { weights.count }

    /// The value with the largest weight; the first by `order` among equals, so that every run gives the same result.
    func heaviest(by order: (Value, Value) -> Bool) -> Value? {
        weights.max { $0.value != $1.value ? $0.value < $1.value : order($1.key, $0.key) }?.key
    }
}

/// The functions that called a report's culprit: the next functions of the app on the stack.
struct CulpritCallers: Decodable {
    /// The most callers that are looked up.
    private static let limit = 16

    private var culprit: ReportSummary.Culprit?
    private var samples: [Sample]
    private var stacks: [[Int]]
    private var frames: [Frame]

    private struct Sample: Decodable {
        var stack: Int?
        var weightMilliseconds: Double?
    }

    private struct Frame: Decodable {
        var function: String?
        var isInApp: Bool
        var isRuntimeFrame: Bool?
    }

    /// The callers in a report's JSON that samples for most of the time show, the nearest first; of equal ones, the first.
    static func names(in json: [UInt8]) -> [String] {
        guard let report = try? JSONDecoder().decode(CulpritCallers.self, from: Data(json)),
            let culprit = report.culprit?.function
        else { return [] }
        let chains = report.samples.map { report.callers(of: culprit, in: $0) }
        var weights: [String: Double] = [:]
        for (sample, chain) in zip(report.samples, chains) {
            if let nearest = chain.first { weights[nearest, default: 0] += sample.weightMilliseconds ?? 0 }
        }
        let most = weights.values.max()
        return chains.first { $0.first.flatMap { weights[$0] } == most } ?? []
    }

    private func callers(of culprit: String, in sample: Sample) -> [String] {
        guard let stack = sample.stack, stacks.indices.contains(stack) else { return [] }
        let functions = stacks[stack].filter(frames.indices.contains).map { frames[$0] }
        guard let place = functions.firstIndex(where: { $0.function == culprit }) else { return [] }
        let callers = functions[(place + 1)...].lazy.filter { $0.isInApp && $0.isRuntimeFrame != true }
            .compactMap(\.function).filter { $0 != culprit }
        return Array(callers.prefix(Self.limit))
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
                "\(stalls) of \(group.loop)\(place): \(total) in all, \(group.maximumMilliseconds.duration) at most.",
            cause: group.cause, file: group.culprit?.file, line: group.culprit?.line,
            milliseconds: group.totalMilliseconds
        )
    }
}
