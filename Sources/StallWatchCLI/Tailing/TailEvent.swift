import StallReports

/// The output of `tail --json` for one event.
struct TailEvent: Encodable {
    let event: StallFollower.Event
    let report: Report

    struct Report: Encodable {
        let id: String
        let kind: String
        let state: String
        let startedAt: Timestamp
        let durationMilliseconds: Double
        let loop: String
        let cause: String?
        let culprit: TopReport.Culprit?
        let fingerprint: String?
        let repeats: Int
        let process: String
        let pid: Int32

        init(_ report: ReportSummary) {
            id = report.id
            kind = report.kind.rawValue
            state = report.state.rawValue
            startedAt = report.startedAt
            durationMilliseconds = report.durationMilliseconds
            loop = report.loop
            cause = report.cause?.rawValue
            culprit = report.culprit.map {
                TopReport.Culprit(function: $0.function, image: $0.image, file: $0.file, line: $0.line)
            }
            fingerprint = report.fingerprint
            repeats = report.repeats
            process = report.process.name
            pid = report.process.pid
        }
    }
}
