import ArgumentParser
import LinuxSupport
import StallReports
import TextOutput

struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a report: what stalled, why, who holds the lock, and the stacks.",
        discussion: """
            Shows the newest of several reports on one screen: what stalled, why, what to try, the source, for a lock beside that of \
            its owner, and the app's frames. --all shows the rest. Frames of the app's own code are marked with >; runtime frames, \
            which only pass a call on, are folded. Source lines are shown if the source file is found below the working directory or \
            --source-root.

            Four or more hexadecimal digits that are no path select a fingerprint or a report's id, as `top` shows them; 1 selects \
            the first row of `top`.

            Examples:
              stallwatch show
              stallwatch show 1
              stallwatch show 9f2c41d0 --all
              stallwatch show stalls/stall-20261121T080000.123456Z-5f3b8a1c2d4e.json
              stallwatch show stalls --sort longest -n 3 --cause lock
              stallwatch show stalls --id 01936c1e --markdown
            """
    )

    enum Order: String, CaseIterable, ExpressibleByArgument {
        case newest, longest

        /// The words of `top` mean the same.
        init?(argument: String) { self.init(rawValue: ["last": "newest", "max": "longest"][argument] ?? argument) }
    }

    @OptionGroup var selection: ReportSelection

    @Option(help: ArgumentHelp("The first or last digits of the report's id.", valueName: "digits"))
    var id: String?

    @Option(help: ArgumentHelp("Sort by newest or longest.", valueName: "order"))
    var sort = Order.newest

    // Unconditional, so that -1 is an invalid value and not an unknown option; joined, as in head(1), is -n5.
    @Option(
        name: [.customShort("n", allowingJoined: true), .long], parsing: .unconditional,
        help: ArgumentHelp("Show this many reports.", valueName: "count"))
    var limit = 1

    @Flag(help: "Show the whole report: all samples, lock owners, tasks, other threads, and the facts.")
    var all = false

    @Flag(help: "Show the whole report with its runtime frames.")
    var allFrames = false

    @OptionGroup var sourceOptions: SourceOptions

    @OptionGroup var terminalOptions: TerminalOptions

    @OptionGroup var formatOptions: FormatOptions

    func validate() throws {
        if limit < 1 { throw ValidationError("--limit is \(limit), but has to be at least 1.") }
    }

    func run() throws {
        var (chosen, count): ([Choice], Int) = ([], 0)
        // As JSON, it is a document for each report.
        try NoStalls.allowed(formatOptions.chosen == .junit) { (chosen, count) = try choose() }
        let reports = try chosen.map { choice throws(CommandFailure) in
            do throws(UnreadableReport) {
                return (report: try StallReport(json: choice.json), origin: choice.origin)
            } catch {
                throw CommandFailure(.faultyData, "\(choice.origin): \(error.reason)")
            }
        }
        switch formatOptions.chosen {
        case .text: try printText(reports, of: count)
        case .json:
            for (report, _) in reports {
                let advice = ["advice": report.advice].compactMapValues(\.self)
                try StandardOutput.write(JSONOutput.bytes(Joined(base: report, others: advice)))
            }
        case .markdown: try StandardOutput.write(markdown(reports))
        case .github: try CIOutput.printGitHub(reports.map { Finding($0.report) }, summary: markdown(reports))
        case .junit: try StandardOutput.write(JUnitDocument(findings: reports.map { Finding($0.report) }).text)
        }
    }

    private func printText(_ reports: [(report: StallReport, origin: ReportOrigin)], of count: Int) throws {
        let views = reports.map { view(of: $0, terminalOptions.terminal) }
        var text = views.map { all || allFrames ? $0.text : $0.brief }.joined(separator: "\n\n")
        if count > reports.count {
            text += "\n\(reports.count) of \(counted(count, "report", "reports")) shown: "
            text += "--limit, --sort and --id choose others.\n"
        }
        try StandardOutput.writeLast(text)
    }

    private func markdown(_ reports: [(report: StallReport, origin: ReportOrigin)]) -> String {
        reports.map { ReportMarkdown(view: view(of: $0, Terminal())).text }.joined(separator: "\n")
    }

    private func view(of report: (report: StallReport, origin: ReportOrigin), _ terminal: Terminal) -> ReportView {
        ReportView(
            report: report.report, origin: report.origin, terminal: terminal, showsAllFrames: allFrames,
            sources: sourceOptions.files
        )
    }

    private typealias Choice = (summary: ReportSummary, origin: ReportOrigin, json: [UInt8])

    /// The first reports in the requested order, which alone are held in memory, and the number of all.
    private func choose() throws -> (chosen: [Choice], count: Int) {
        let reports = try selection.read()
        var chosen: [Choice] = []
        var count = 0
        try reports.forEach(.undecoded) { report, origin in
            let summary = report.summary
            guard id.map(summary.hasID) ?? true else { return }
            count += 1
            let place = chosen.firstIndex { precedes(summary, $0.summary) } ?? chosen.count
            guard place < limit else { return }
            chosen.insert((summary, origin, report.json), at: place)
            if chosen.count > limit { chosen.removeLast() }
        }
        guard count > 0 else {
            throw CommandFailure(.nothing, "No report matches: none has the id '\(id ?? "")'.")
        }
        return (chosen, count)
    }

    private func precedes(_ left: ReportSummary, _ right: ReportSummary) -> Bool {
        switch sort {
        case .newest: left.startedAt > right.startedAt
        case .longest: left.durationMilliseconds > right.durationMilliseconds
        }
    }
}
