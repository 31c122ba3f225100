import StallReports

/// The stalls of many reports, or the samples of a live process, as the source of every profile format.
struct StallProfile {
    /// What is counted.
    enum Content {
        case stalls
        /// Each entry of ``StallProfile/stalls`` is a run of equal samples.
        case samples
    }

    /// A watched loop of a program.
    struct Loop: Hashable {
        var process: String
        var pid: Int32
        var label: String
        var kind: String
        /// The thread's kernel id; `nil` for a pool.
        var thread: Int32?
    }

    /// One stall.
    struct Stall {
        /// Index into ``StallProfile/loops``.
        var loop: Int
        var startedAt: Timestamp
        var microseconds: Int
        /// The number of stalls or samples that it stands for.
        var count = 1
        /// The report's kind.
        var kind: String
        /// The report's cause; for samples, what the thread was doing.
        var cause: String
        /// The trace and the span, if the report names them.
        var trace: TraceContext
        /// Shares of ``microseconds``, each with a node of the table.
        var shares: [(node: Int, microseconds: Int)]
        /// The turns of the watched loops around the stall; empty if the report has none.
        var history: [StallReport.LoopHistory]
    }

    let content: Content
    private(set) var table = StackTable()
    private(set) var loops: [Loop] = []
    private(set) var stalls: [Stall] = []
    private var loopIndices: [Loop: Int] = [:]

    /// Stalled time of all stalls.
    var microseconds: Int { stalls.reduce(0) { $0 + $1.microseconds } }

    init(of content: Content = .stalls) { self.content = content }

    /// Adds a report.
    mutating func add(_ report: StallReport) {
        stalls.append(
            Stall(
                loop: loop(of: report), startedAt: report.startedAt,
                microseconds: StallWeights.microseconds(of: report), kind: report.kind.rawValue,
                cause: report.cause?.kind.rawValue ?? StallReport.CauseKind.unknown.rawValue,
                trace: TraceContext(report), shares: table.add(report),
                history: report.history?.loops ?? []
            )
        )
    }

    /// The most samples in a run; no profile takes more.
    private static let maximumCount = 30_000

    /// Adds a thread's samples.
    ///
    /// - Parameter report: A report of the kind ``StallReport/Kind/profile``.
    mutating func add(profile report: StallReport) {
        let loop = loop(of: report)
        let begin = report.startedAt.microsecondsSince1970
        for (sample, node) in zip(report.samples, table.add(profile: report)) {
            let duration = StallWeights.microseconds(sample.weightMilliseconds ?? 0)
            stalls.append(
                Stall(
                    loop: loop,
                    startedAt: Timestamp(
                        microsecondsSince1970: begin + Int64(StallWeights.microseconds(sample.atMilliseconds))),
                    microseconds: duration, count: min(max(sample.timesSeen ?? 1, 1), Self.maximumCount),
                    kind: report.kind.rawValue,
                    cause: sample.threadState?.rawValue ?? StallReport.CauseKind.unknown.rawValue,
                    trace: TraceContext(metadata: report.metadata), shares: [(node, duration)], history: []
                )
            )
        }
    }

    private mutating func loop(of report: StallReport) -> Int {
        let loop = Loop(
            process: report.process.name, pid: report.process.pid, label: report.loop.label,
            kind: report.loop.kind.rawValue, thread: report.loop.thread?.id
        )
        if let known = loopIndices[loop] { return known }
        loopIndices[loop] = loops.count
        loops.append(loop)
        return loops.count - 1
    }

    /// The stalls of each loop, by time.
    var stallsByLoop: [[Stall]] {
        var lists = [[Stall]](repeating: [], count: loops.count)
        for stall in stalls { lists[stall.loop].append(stall) }
        return lists.map { $0.sorted { $0.startedAt < $1.startedAt } }
    }
}
