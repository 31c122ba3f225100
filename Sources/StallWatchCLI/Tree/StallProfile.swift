import StallReports

struct StallProfile {
    struct Process: Hashable {
        var name: String
        var pid: Int32
        /// Processes of containers often have the same name and id.
        var host: String
    }

    struct LoopIdentity: Hashable {
        var process: Process
        var label: String
        var kind: String
        /// The thread's kernel id; `nil` for a pool.
        var thread: Int32?
    }

    struct Stall {
        var loop: Int
        var startedAt: Timestamp
        var microseconds: Int
        var kind: String
        var cause: String
        /// Shares of ``microseconds``, each with a node of the table.
        var shares: [(node: Int, microseconds: Int)]
        /// The turns of the watched loops around the stall; empty if the report has none.
        var history: [StallReport.LoopHistory]
        /// The stalls without a report of their own that it stands for.
        var repeats = 0
        /// By which its shares are multiplied to stand for its repeats, too.
        var factor = 1.0

        var allShares: [(node: Int, microseconds: Int)] {
            shares.map { ($0.node, StallWeights.scaled($0.microseconds, by: factor)) }
        }
    }

    /// Whether it has the turns around the stalls, which take more memory than all else.
    var keepsTurns = true
    private(set) var table = StackTable()
    private var loopTable = Numbered<LoopIdentity>()
    private(set) var stalls: [Stall] = []

    var loops: [LoopIdentity] { loopTable.values }
    private var hosts: Set<String> = []
    /// Whether a process's name and id are not enough to tell it from others.
    var hasSeveralHosts: Bool { hosts.count > 1 }

    mutating func add(_ report: StallReport) {
        hosts.insert(report.process.hostname)
        stalls.append(
            Stall(
                loop: loopTable.number(of: LoopIdentity(report)), startedAt: report.startedAt,
                microseconds: StallWeights.microseconds(report.durationMilliseconds), kind: report.kind.rawValue,
                cause: report.causeWord,
                shares: table.add(report), history: keepsTurns ? report.history?.loops ?? [] : [],
                repeats: report.repeats, factor: StallWeights.factor(of: report)
            )
        )
    }

    var stallsByLoop: [[Stall]] {
        let lists = Dictionary(grouping: stalls, by: \.loop)
        return loops.indices.map { loop in (lists[loop] ?? []).sorted { $0.startedAt < $1.startedAt } }
    }
}

extension StallProfile.LoopIdentity {
    init(_ report: StallReport) {
        let process = report.process
        self.init(
            process: StallProfile.Process(name: process.name, pid: process.pid, host: process.hostname),
            label: report.loop.label, kind: report.loop.kind.rawValue, thread: report.loop.thread?.id)
    }
}

/// Divides a stall's time among its samples, to the microsecond: as the report says, or each moment to the nearest one.
///
/// - The first sample also gets the time before it, which has no samples.
/// - A sample that may show a later turn (not ``StallReport/Sample/isValid``) has no stack, and counts only where there is no
///   other.
/// - A sample of a pool is divided equally among the pool's workers.
/// - Time without a stack keeps its share: leaving it out would make the other shares larger.
enum StallWeights {
    struct Share: Equatable {
        /// Index into ``StallReport/stacks``; `nil` when no stack could be taken.
        var stack: Int?
        /// Whether the stack reaches to the thread's first function.
        var isComplete: Bool
        var microseconds: Int
    }

    /// 115 days: a damaged report may claim 10¹⁵ ms, and the sum of 900,000 such reports still fits an `Int`.
    static let maximumMicroseconds = 10_000_000_000_000

    static func factor(of report: StallReport) -> Double {
        let own = report.durationMilliseconds
        let total = min(report.totalMilliseconds, Double(maximumMicroseconds) / 1_000)
        return own > 0 ? max(total / own, 1) : 1
    }

    /// Microseconds times a factor, at most ``maximumMicroseconds``.
    static func scaled(_ microseconds: Int, by factor: Double) -> Int {
        factor == 1 ? microseconds : Int(min((Double(microseconds) * factor).rounded(), Double(maximumMicroseconds)))
    }

    /// The shares of a report's duration, oldest first, without those of less than half a microsecond.
    static func shares(of report: StallReport) -> [Share] {
        let duration = microseconds(report.durationMilliseconds)
        guard !report.samples.isEmpty else { return share(nil, true, duration) }
        var shares: [Share] = []
        var begin = 0
        var sum = 0.0
        let parts = report.sampleShares
        let last = parts.lastIndex { $0 > 0 }
        for index in parts.indices where parts[index] > 0 {
            // From the running sum, so that rounding errors do not add up.
            sum += parts[index]
            let end = index == last ? duration : min(Int((sum * Double(duration)).rounded()), duration)
            guard end > begin else { continue }
            shares += self.shares(of: report.samples[index], end - begin)
            begin = end
        }
        return shares
    }

    private static func shares(of sample: StallReport.Sample, _ microseconds: Int) -> [Share] {
        guard sample.isValid else { return share(nil, true, microseconds) }
        let groups = (sample.workers ?? []).filter { !$0.threads.isEmpty }
        guard sample.stack == nil, !groups.isEmpty else {
            return share(sample.stack, sample.isComplete, microseconds)
        }
        let workers = groups.reduce(0) { $0 + $1.threads.count }
        var done = 0
        var given = 0
        return groups.flatMap { group in
            done += group.threads.count
            let upToHere = microseconds / workers * done + microseconds % workers * done / workers
            defer { given = upToHere }
            return share(group.stack, true, upToHere - given)
        }
    }

    private static func share(_ stack: Int?, _ isComplete: Bool, _ microseconds: Int) -> [Share] {
        microseconds > 0 ? [Share(stack: stack, isComplete: isComplete, microseconds: microseconds)] : []
    }

    /// Milliseconds in microseconds, within 0 and ``maximumMicroseconds``.
    static func microseconds(_ milliseconds: Double) -> Int {
        Int(min(max(milliseconds * 1_000, 0), Double(maximumMicroseconds)).rounded())
    }
}
