import StallReports
import TextOutput

struct ReportMarkdown {
    let view: ReportView

    static let maximumLines = 60

    private var report: StallReport { view.report }

    var text: String {
        let head = [heading, cause, advice, table].filter { !$0.isEmpty }.joined(separator: "\n")
        let room = Self.maximumLines - head.count { $0 == "\n" } - 1
        return head + "\n" + stacks(lines: room)
    }

    private var heading: String {
        "### \(view.stall(loop: MarkdownText.prose(report.loop.label), code: MarkdownText.code))\n"
    }

    private var cause: String {
        guard let why = report.why else { return "" }
        let confidence = report.cause.map { " (\(MarkdownText.prose($0.confidence.rawValue)))" } ?? ""
        return "**\(MarkdownText.prose(report.causeWord))**\(confidence): \(MarkdownText.prose(why))\n"
    }

    private var advice: String {
        report.advice.map { "**Try:** \(MarkdownText.prose($0.text)) See \(MarkdownText.code($0.command)).\n" } ?? ""
    }

    private var table: String {
        let loop = report.loop
        let process = report.process
        let place = report.culprit.flatMap { culprit in culprit.file.map { sourcePlace($0, culprit.line) } }
        let split = report.timedCause.map { cause in
            "on CPU \(cause.onCPUMilliseconds.duration), waiting for a CPU \(cause.runQueueMilliseconds.duration), "
                + "blocked \(cause.blockedMilliseconds.duration)"
        }
        let pairs = report.metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let rows: [(String, String?)] = [
            ("where", place.map(MarkdownText.codeCell) ?? report.missingCulpritReason.map(MarkdownText.prose)),
            ("time", split),
            ("waiting", report.victimsInWords.map(MarkdownText.prose)),
            ("loop", MarkdownText.prose("\(loop.label) (\(loop.kind.inWords)), turn \(loop.turn)")),
            ("context", report.context.map { MarkdownText.prose($0.inWords) }),
            ("began", "\(report.startedAt), threshold \(report.thresholdMilliseconds.duration)"),
            ("process", MarkdownText.prose("\(process.name), pid \(process.pid), \(process.operatingSystem ?? "")")),
            ("metadata", pairs.isEmpty ? nil : MarkdownText.codeCell(pairs.joined(separator: " "))),
            ("report", "\(MarkdownText.codeCell(report.id)), StallWatch \(MarkdownText.prose(report.monitor.version))"),
            ("fingerprint", report.fingerprint.map(MarkdownText.codeCell)),
        ]
        return MarkdownText.table(["", ""], rows.compactMap { name, value in value.map { [name, $0] } })
    }

    private func stacks(lines room: Int) -> String {
        let text = [view.lockChain, view.peers, view.stacks].filter { !$0.isEmpty }.joined(separator: "\n")
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        while lines.last?.isEmpty == true { lines.removeLast() }
        guard !lines.isEmpty else { return "" }
        // The fences and the line that tells of the rest.
        let shown = lines.count + 2 <= room ? lines.count : max(room - 3, 0)
        let left = lines.count - shown
        let rest = left > 0 ? ["… \(counted(left, "more line", "more lines")): stallwatch show --id \(report.id)"] : []
        return MarkdownText.block(Array(lines.prefix(shown)) + rest)
    }
}
