import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct TailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Follow a report directory: show stalls as they happen.",
        discussion: """
            Shows a stall while it is going on and again when it has ended. On a terminal, the last line shows how long the ongoing \
            stalls have lasted. Without a directory it waits for stalls to appear, so it can be started before the program. Ends \
            with Ctrl-C.

            Examples:
              stallwatch tail
              stallwatch tail stalls --loop main --min 1s
              stallwatch tail stalls --json | jq .report.culprit
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The directory that a monitor writes its reports to. Default: stalls.", valueName: "directory"))
    var directory: String?

    @OptionGroup(title: "Which reports") var filters: FilterOptions

    @Flag(help: "Show the existing reports too.")
    var all = false

    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON, one line per event.")
    var json = false

    func validate() throws {
        // A misspelled word would match no report, ever.
        for (option, words, known) in [
            ("--cause", filters.cause, FilterOptions.causes), ("--kind", filters.kind, FilterOptions.kinds),
        ] {
            guard let unknown = words.first(where: { !known.contains($0) }) else { continue }
            throw ValidationError(
                "\(option): '\(unknown)' is unknown. The values are: \(known.joined(separator: ", ")).")
        }
    }

    func run() throws {
        let stop = StopRequest.bySignal()
        let path = directory ?? ReportFiles.standardFolder
        let isNew = directory == nil && FileStatus(path: path) == nil
        if isNew {
            StandardError.write("Waiting for \(path)/ to appear. Ctrl-C ends it.\n")
            while FileStatus(path: path) == nil {
                guard !stop.isSet, !StandardOutput.isClosed else { return }
                stop.wait(until: monotonicNow() &+ Self.period)
            }
        }
        var follower = FollowedDirectory(watch: try DirectoryWatch(path: path), filter: filters.filter)
        let printer = TailPrinter(
            terminal: terminalOptions.terminal, isJSON: json, hasStatusLine: Terminal.obeysSequences)
        if !all, !isNew { try follower.poll(printer, skipsEnded: true) }
        while !stop.isSet, !StandardOutput.isClosed {
            try follower.poll(printer)
            try printer.showOngoing(follower.ongoing)
            stop.wait(until: monotonicNow() &+ Self.period)
        }
        try printer.clear()
    }

    /// Nanoseconds between two polls: 0.2 s, which feels immediate.
    private static let period: UInt64 = 200_000_000
}

final class TailPrinter {
    private let terminal: Terminal
    private let isJSON: Bool
    /// Whether the terminal can replace its last line.
    private let hasStatusLine: Bool
    private let write: (String) throws -> Void
    private var statusLine = ""

    init(
        terminal: Terminal, isJSON: Bool, hasStatusLine: Bool = true,
        write: @escaping (String) throws -> Void = StandardOutput.write
    ) {
        self.terminal = terminal
        self.isJSON = isJSON
        self.hasStatusLine = hasStatusLine
        self.write = write
    }

    func print(_ event: StallFollower.Event, _ report: ReportSummary) throws {
        if isJSON {
            let line = JSONOutput.bytes(TailEvent(event: event, report: report), isIndented: false)
            return try write(String(decoding: line, as: UTF8.self))
        }
        try clear()
        try write(line(event, report) + "\n")
    }

    func showOngoing(_ reports: [ReportSummary], now: Int = wallClock()) throws {
        guard terminal.isTerminal, hasStatusLine, !isJSON else { return }
        guard let oldest = reports.first else { return try clear() }
        let age = Double(now / 1_000 - Int(oldest.startedAt.microsecondsSince1970)) / 1_000
        let others = reports.count > 1 ? " and \(reports.count - 1) more" : ""
        let culprit = oldest.culprit.map { " in \($0.function)" } ?? ""
        let text = "\(oldest.loop)\(others) \(oldest.kind.verbs.perfect) \(max(age, 0).duration)\(culprit)".printable
        let line = text.truncated(to: (terminal.width ?? 80) - 1)
        guard line != statusLine else { return }
        statusLine = line
        try write(ProgressBar.rewind + terminal.style(line, .red))
    }

    func clear() throws {
        guard !statusLine.isEmpty else { return }
        statusLine = ""
        try write(ProgressBar.rewind)
    }

    private func line(_ event: StallFollower.Event, _ report: ReportSummary) -> String {
        let duration = report.durationMilliseconds.duration
        let (words, style): (String, Terminal.Style) =
            switch event {
            case .began: ("\(report.kind.verbs.present), \(duration) so far", .red)
            case .ended: ("\(report.kind.verbs.past) \(duration)", .yellow)
            case .abandoned: ("end not observed, after \(duration)", .magenta)
            case .died: ("process died, after \(duration)", .magenta)
            }
        var rest = report.cause.map { "  \($0.rawValue)" } ?? ""
        if let culprit = report.culprit {
            rest += "  \(culprit.function)"
            if let file = culprit.file { rest += "  \(sourcePlace(file, culprit.line))" }
        }
        if report.repeats > 0 { rest += "  +\(report.repeats) like it" }
        let head = "\(report.startedAt.timeOfDay)  \(report.loop.printable.padded(to: 10))  "
        let padded = words.padded(to: 22)
        let room = (terminal.width ?? .max) - head.columns - padded.columns
        return terminal.style(head, .faint) + terminal.style(padded, style)
            + rest.printable.truncated(to: max(room, 20))
    }
}

struct TailEvent: Encodable {
    let event: StallFollower.Event
    let report: ReportSummary

    private enum CodingKeys: CodingKey { case event, report }

    private enum ReportField: CodingKey {
        case id, kind, state, startedAt, durationMilliseconds, loop, cause, culprit, fingerprint, repeats, process, pid
    }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(event, forKey: .event)
        var values = fields.nestedContainer(keyedBy: ReportField.self, forKey: .report)
        try values.encode(report.id, forKey: .id)
        try values.encode(report.kind, forKey: .kind)
        try values.encode(report.state, forKey: .state)
        try values.encode(report.startedAt, forKey: .startedAt)
        try values.encode(report.durationMilliseconds, forKey: .durationMilliseconds)
        try values.encode(report.loop, forKey: .loop)
        try values.encodeIfPresent(report.cause, forKey: .cause)
        try values.encodeIfPresent(report.culprit, forKey: .culprit)
        try values.encodeIfPresent(report.fingerprint, forKey: .fingerprint)
        try values.encode(report.repeats, forKey: .repeats)
        try values.encode(report.process.name, forKey: .process)
        try values.encode(report.process.pid, forKey: .pid)
    }
}
