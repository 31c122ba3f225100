import StallReports

/// The stalls of many reports, as the source of every profile format.
struct StallProfile {
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
        /// The report's kind.
        var kind: String
        /// The report's cause.
        var cause: String
        /// The trace and the span, if the report names them.
        var trace: TraceContext
        /// Shares of ``microseconds``, each with a node of the table.
        var shares: [(node: Int, microseconds: Int)]
        /// The turns of the watched loops around the stall; empty if the report has none.
        var history: [StallReport.LoopHistory]
    }

    private(set) var table = StackTable()
    private(set) var loops: [Loop] = []
    private(set) var stalls: [Stall] = []
    private var loopIndices: [Loop: Int] = [:]

    /// Stalled time of all stalls.
    var microseconds: Int { stalls.reduce(0) { $0 + $1.microseconds } }

    /// Adds a report.
    mutating func add(_ report: StallReport) {
        let loop = Loop(
            process: report.process.name, pid: report.process.pid, label: report.loop.label,
            kind: report.loop.kind.rawValue, thread: report.loop.thread?.id
        )
        if loopIndices[loop] == nil {
            loopIndices[loop] = loops.count
            loops.append(loop)
        }
        stalls.append(
            Stall(
                loop: loopIndices[loop] ?? 0, startedAt: report.startedAt,
                microseconds: StallWeights.microseconds(of: report), kind: report.kind.rawValue,
                cause: report.cause?.kind.rawValue ?? StallReport.CauseKind.unknown.rawValue,
                trace: TraceContext(report), shares: table.add(report),
                history: report.history?.loops ?? []
            )
        )
    }

    /// The stalls of each loop, by time.
    var stallsByLoop: [[Stall]] {
        var lists = [[Stall]](repeating: [], count: loops.count)
        for stall in stalls { lists[stall.loop].append(stall) }
        return lists.map { $0.sorted { $0.startedAt < $1.startedAt } }
    }
}
