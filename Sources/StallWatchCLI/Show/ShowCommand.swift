import StallReports
import ArgumentParser
import TextOutput

struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a report: what stalled, why, who holds the lock, and the stacks.",
        discussion: """
            Shows the newest of several reports. Frames of the app's own code are marked with >; runtime frames, which only pass a call \
            on, are folded. Source lines are shown if the source file is found below the working directory or --source-root.

            Examples:
              stallwatch show stalls
              stallwatch show stalls/stall-20261121T080000.123456Z-5f3b8a1c2d4e.json
              stallwatch show stalls --by longest --limit 3 --cause lock
              stallwatch show stalls --id 01936c1e --markdown
            """
    )

    enum Order: String, CaseIterable, ExpressibleByArgument {
        case newest, longest
    }

    @OptionGroup var selection: ReportSelection

    @Option(help: ArgumentHelp("The first or last digits of the report's id.", valueName: "digits"))
    var id: String?

    @Option(help: ArgumentHelp("Which reports come first: newest or longest.", valueName: "order"))
    var by = Order.newest

    // Unconditional, so that -1 is an invalid value and not an unknown option.
    @Option(parsing: .unconditional, help: ArgumentHelp("Show this many reports.", valueName: "count"))
    var limit = 1

    @Flag(help: "Show all frames.")
    var allFrames = false

    @Flag(help: "Show the stacks of other threads, if the report has them.")
    var threads = false

    @OptionGroup var sourceOptions: SourceOptions

    @OptionGroup var terminalOptions: TerminalOptions

    @OptionGroup var formatOptions: FormatOptions

    func validate() throws {
        if limit < 1 { throw ValidationError("--limit is \(limit), but has to be at least 1.") }
    }

    func run() throws {
        let (chosen, count) = try choose()
        let reports = try chosen.map { choice throws(CommandFailure) in
            do throws(UnreadableReport) {
                return (report: try StallReport(json: choice.bytes), origin: choice.origin)
            } catch {
                throw CommandFailure(.faultyData, "\(choice.origin): \(error.reason)")
            }
        }
        switch formatOptions.chosen {
        case .text: try printText(reports, of: count)
        case .json: for (report, _) in reports { try StandardOutput.write(PlainJSON.escaped(report.jsonData())) }
        case .markdown: try StandardOutput.write(markdown(reports))
        case .github: try CIOutput.printGitHub(reports.map { Finding($0.report) }, summary: markdown(reports))
        case .junit: try StandardOutput.write(JUnitDocument(findings: reports.map { Finding($0.report) }).text)
        }
    }

    private func printText(_ reports: [(report: StallReport, origin: ReportOrigin)], of count: Int) throws {
        guard !reports.isEmpty else { return try StandardOutput.write("No report matches.\n") }
        for (index, report) in reports.enumerated() {
            try StandardOutput.write((index > 0 ? "\n\n" : "") + view(of: report, terminalOptions.terminal).text)
        }
        if count > reports.count {
            try StandardOutput.write(
                "\n\(reports.count) of \(counted(count, "report", "reports")) shown: --limit, --by and --id choose others.\n"
            )
        }
    }

    private func markdown(_ reports: [(report: StallReport, origin: ReportOrigin)]) -> String {
        guard !reports.isEmpty else { return "No report matches.\n" }
        return reports.map { ReportMarkdown(view: view(of: $0, Terminal())).text }.joined(separator: "\n")
    }

    private func view(of report: (report: StallReport, origin: ReportOrigin), _ terminal: Terminal) -> ReportView {
        ReportView(
            report: report.report, origin: report.origin, terminal: terminal, showsAllFrames: allFrames,
            showsThreads: threads, sources: sourceOptions.files
        )
    }

    private struct Choice {
        var summary: ReportSummary
        var origin: ReportOrigin
        var bytes: [UInt8]
    }

    /// The first reports in the requested order, which alone are held in memory, and the number of all.
    private func choose() throws -> (chosen: [Choice], count: Int) {
        let reports = try selection.read()
        var chosen: [Choice] = []
        var count = 0
        try reports.forEachMatch { bytes, _ throws(UnreadableReport) in
            bytes
        } body: { summary, bytes, origin in
            guard id.map({ summary.id.hasPrefix($0) || summary.id.hasSuffix($0) }) ?? true else { return }
            count += 1
            let place = chosen.firstIndex { precedes(summary, $0.summary) } ?? chosen.count
            guard place < limit else { return }
            chosen.insert(Choice(summary: summary, origin: origin, bytes: bytes), at: place)
            if chosen.count > limit { chosen.removeLast() }
        }
        return (chosen, count)
    }

    private func precedes(_ left: ReportSummary, _ right: ReportSummary) -> Bool {
        switch by {
        case .newest: left.startedAt > right.startedAt
        case .longest: left.durationMilliseconds > right.durationMilliseconds
        }
    }
}
