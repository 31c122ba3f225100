import StallReports

/// The part of a report that grouping, filtering and listing need: everything but its stacks.
///
/// Most of a report is stacks. Decoding only this part of 50,000 reports takes a fifth of the time of decoding them whole.
struct ReportSummary: Sendable, Equatable {
    var id: String
    var kind: StallReport.Kind
    var state: StallReport.State
    var startedAt: Timestamp
    var durationMilliseconds: Double
    var process: Process
    var metadata: [String: String]
    var loop: String
    var loopKind: StallReport.LoopKind
    var callout: StallReport.Callout?
    var fingerprint: String?
    var repeats: Int
    var culprit: Culprit?
    var cause: StallReport.CauseKind?
    /// The label of what the thread was working on, else the task's name.
    var context: String?
    /// The functions on all of its stacks; empty unless requested.
    var functions: [String] = []

    struct Process: Sendable, Hashable, Decodable {
        var name: String
        var pid: Int32
        var startedAt: Timestamp?
        var startTicks: UInt64?
        var bootID: String?
        var hostname: String
    }

    /// The function that a developer should inspect first.
    struct Culprit: Sendable, Hashable, Decodable {
        var function: String
        var image: String?
        var file: String?
        var line: Int?
    }
}

extension ReportSummary {
    /// The same part of a whole report.
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
            cause: report.cause?.kind, context: report.context?.name, functions: report.frames.compactMap(\.function)
        )
    }
}
