import StallReports

/// What grouping, filtering and listing need of a report: everything but its stacks.
struct ReportSummary: Sendable, Equatable {
    var id = ""
    var kind = StallReport.Kind.stall
    var state = StallReport.State.ended
    var startedAt = Timestamp(microsecondsSince1970: 0)
    var durationMilliseconds = 0.0
    var process = Process()
    var metadata: [String: String] = [:]
    var loop = ""
    var loopKind = StallReport.LoopKind.runLoop
    var callout: StallReport.Callout?
    var fingerprint: String?
    var repeats = 0
    var culprit: Culprit?
    var cause: StallReport.CauseKind?
    /// The functions on all of its stacks, if they were asked for.
    var functions: [String] = []

    struct Process: Sendable, Hashable {
        var name = ""
        var pid: Int32 = 0
        var startedAt: Timestamp?
        var startTicks: UInt64?
        var bootID: String?
        var hostname = ""
    }

    /// The function that a developer should look at first.
    struct Culprit: Sendable, Hashable {
        var function = ""
        var image: String?
        var file: String?
        var line: Int?
    }
}

extension ReportSummary {
    /// What a whole report says.
    init(_ report: StallReport) {
        let process = report.process
        self.init(
            id: report.id, kind: report.kind, state: report.state, startedAt: report.startedAt,
            durationMilliseconds: report.durationMilliseconds,
            process: Process(
                name: process.name, pid: process.pid, startedAt: process.startedAt, startTicks: process.startTicks,
                bootID: process.bootID, hostname: process.hostname
            ),
            metadata: report.metadata, loop: report.loop.label, loopKind: report.loop.kind, callout: report.callout,
            fingerprint: report.fingerprint, repeats: report.repeats,
            culprit: report.culprit.map {
                Culprit(function: $0.function, image: $0.image, file: $0.file, line: $0.line)
            },
            cause: report.cause?.kind, functions: report.frames.compactMap(\.function)
        )
    }
}
