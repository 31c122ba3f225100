import StallReports
import TextOutput

/// Prints a line per event and, on a terminal, a status line that is updated in place.
final class TailPrinter {
    /// To the line's beginning, and clear to its end (ECMA-48).
    private static let rewind = "\r\u{1b}[K"

    private let terminal: Terminal
    private let isJSON: Bool
    private let write: (String) throws -> Void
    private var statusLine = ""

    init(terminal: Terminal, isJSON: Bool, write: @escaping (String) throws -> Void = StandardOutput.write) {
        self.terminal = terminal
        self.isJSON = isJSON
        self.write = write
    }

    func print(_ event: StallFollower.Event, _ report: ReportSummary) throws {
        if isJSON {
            let line = try JSONOutput.bytes(TailEvent(event: event, report: .init(report)), isIndented: false)
            return try write(String(decoding: line, as: UTF8.self))
        }
        try clear()
        try write(line(event, report) + "\n")
    }

    /// Updates the status line: how long the ongoing stalls have lasted.
    func showOngoing(_ reports: [ReportSummary], now: Int = wallClock()) throws {
        guard terminal.isTerminal, !isJSON else { return }
        guard let oldest = reports.first else { return try clear() }
        let age = Double(now / 1_000 - Int(oldest.startedAt.microsecondsSince1970)) / 1_000
        let others = reports.count > 1 ? " and \(reports.count - 1) more" : ""
        let culprit = oldest.culprit.map { " in \($0.function)" } ?? ""
        let text = "\(oldest.loop)\(others) stalled for \(max(age, 0).duration)\(culprit)".printable
        let line = text.truncated(to: (terminal.width ?? 80) - 1)
        guard line != statusLine else { return }
        statusLine = line
        try write(Self.rewind + terminal.style(line, .red))
    }

    /// Clears the status line.
    func clear() throws {
        guard !statusLine.isEmpty else { return }
        statusLine = ""
        try write(Self.rewind)
    }

    private func line(_ event: StallFollower.Event, _ report: ReportSummary) -> String {
        let duration = report.durationMilliseconds.duration
        let (words, style): (String, Terminal.Style) =
            switch event {
            case .began: ("stalls, \(duration) so far", .red)
            case .ended: ("stalled for \(duration)", .yellow)
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
