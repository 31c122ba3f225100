import StallReports

/// A report as a person wants to read it.
struct ReportView {
    let report: StallReport
    let origin: ReportOrigin
    let terminal: Terminal
    /// Whether frames that only pass a call on are shown too.
    var showsAllFrames = false
    /// Whether the other threads' stacks are shown too.
    var showsThreads = false
    /// Whether lines of the source files are shown, where these are there.
    var showsSource = true

    /// How wide a bar is.
    static let barWidth = 50

    /// The text, with a line feed at the end.
    var text: String {
        var parts = [headline, split, lockChain, stacks]
        if showsSource { parts.append(source) }
        if showsThreads { parts.append(otherThreads) }
        parts.append(facts)
        return parts.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    // MARK: - What and why

    private var headline: String {
        var lines = terminal.style(report.summary.printable, .bold) + "\n"
        if let cause = report.cause {
            let kind = terminal.style(cause.kind.rawValue.printable, .yellow)
            lines += "\(kind) (\(cause.confidence.rawValue.printable)): \(cause.summary.printable)\n"
        }
        if report.state == .ongoing {
            lines += "It still lasted when this was written.\n"
        } else if report.state == .abandoned {
            lines += "Nobody saw its end: the process died, or the monitor was stopped.\n"
        }
        return lines
    }

    private var split: String {
        guard let cause = report.cause else { return "" }
        let parts: [(String, Double, Terminal.Style, Character)] = [
            ("on CPU", cause.onCPUMilliseconds, .red, "█"),
            ("waiting for a CPU", cause.runQueueMilliseconds, .yellow, "▓"),
            ("blocked", cause.blockedMilliseconds, .blue, "░"),
        ]
        let total = parts.reduce(0) { $0 + $1.1 }
        guard total > 0, total.isFinite, parts.allSatisfy({ $0.1 >= 0 }) else { return "" }
        let width = min(Self.barWidth, max((terminal.width ?? 80) - 2, 10))
        let widths = Self.shares(parts.map { $0.1 / total }, of: width)
        let bar = zip(parts, widths).map { part, width in
            terminal.style(String(repeating: part.3, count: width), part.2)
        }.joined()
        let legend = parts.map { name, milliseconds, style, character in
            let percent = Int((milliseconds / total * 100).rounded())
            return "\(terminal.style(String(character), style)) \(name) \(milliseconds.duration) (\(percent) %)"
        }.joined(separator: "  ")
        return "  \(bar)\n  \(legend)\n"
    }

    /// `width` cells shared out by `shares`, which add up to 1: whatever is there has one at least.
    static func shares(_ shares: [Double], of width: Int) -> [Int] {
        var cells = shares.map { $0 > 0.001 ? max(Int(($0 * Double(width)).rounded()), 1) : 0 }
        while let largest = cells.indices.max(by: { cells[$0] < cells[$1] }) {
            let excess = cells.reduce(0, +) - width
            guard excess != 0 else { break }
            cells[largest] -= excess.signum()
        }
        return cells
    }

    // MARK: - Where it was written down

    private var facts: String {
        let process = report.process
        let metadata = report.metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let loop = report.loop
        let thread = loop.thread.map { ", thread \($0.id)" + ($0.name.map { " \"\($0)\"" } ?? "") } ?? ""
        var rows = [
            ("began", "\(report.startedAt)"),
            ("loop", "\(loop.label) (\(loop.kind.rawValue)), turn \(loop.turn)\(thread)"),
            ("threshold", report.thresholdMilliseconds.duration),
            ("process", "\(process.name), pid \(process.pid), on \(process.hostname)"),
        ]
        if let mode = loop.mode { rows.insert(("mode", mode), at: 2) }
        if !metadata.isEmpty { rows.append(("metadata", metadata.joined(separator: " "))) }
        if let fingerprint = report.fingerprint { rows.append(("fingerprint", fingerprint)) }
        if report.repeats > 0 {
            rows.append(("repeats", "\(counted(report.repeats, "stall", "stalls")) like it since the report before"))
        }
        rows.append(("report", "\(report.id), \(origin)"))
        return rows.map { terminal.style($0.padded(to: 12), .faint) + $1.printable + "\n" }.joined()
    }
}
