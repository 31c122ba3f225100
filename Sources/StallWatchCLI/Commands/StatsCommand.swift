import ArgumentParser
import TextOutput

/// Sums up statistics files.
struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Sum up statistics files: turns, latencies and stalls of each loop.",
        discussion: """
            When a monitor stops, it writes its statistics to the configuration's statisticsPath. Several files are added up by \
            loop label. The bars below the table are each loop's turns by duration. In a directory, every *.json file with \
            statistics is read.

            Examples:
              stallwatch stats notes-statistics.json
              stallwatch stats /var/log/notes --json
            """
    )

    @Argument(help: ArgumentHelp("Statistics files or directories (searched).", valueName: "path"))
    var paths: [String]

    @OptionGroup var terminalOptions: TerminalOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let total = try StatisticsFile.sum(of: paths)
        if json {
            try StandardOutput.write(JSONOutput.bytes(StatisticsReport(total)))
        } else {
            try StandardOutput.write(Self.text(total, for: terminalOptions.terminal))
        }
    }

    /// The table and closing sentences.
    static func text(_ total: StatisticsSum, for terminal: Terminal) -> String {
        var table = TextTable([
            .init("loop", isFlexible: true, style: .bold), .init("watched", .right), .init("turns", .right),
            .init("busy", .right, dropped: 3), .init("p50", .right, dropped: 2), .init("p99", .right),
            .init("max", .right),
            .init("stalls", .right), .init("per hour", .right, dropped: 1), .init("stalled", .right),
        ])
        for loop in total.loops { table.add(cells(loop)) }
        var text = total.loops.isEmpty ? "No loop was watched.\n" : table.text(for: terminal)
        for loop in total.loops { text += TurnHistogramText.text(loop, for: terminal) }
        text += "\n\(counted(total.stalls, "stall", "stalls")) in \(counted(total.files, "file", "files"))"
        let suppressed = total.suppressed.filter { $0.value > 0 }.sorted { $0.key < $1.key }
        if !suppressed.isEmpty {
            text += "; suppressed: " + suppressed.map { "\($0.value) \($0.key.printable)" }.joined(separator: ", ")
        }
        text += ".\n"
        for (name, count) in total.troubles where count > 0 { text += "\(name): \(count)\n" }
        if let error = total.lastWriteError { text += "The last write that failed: \(error.printable)\n" }
        return text
    }
}

extension StatsCommand {
    private static func cells(_ loop: StatisticsSum.Loop) -> [String] {
        var busy = "-"
        var perHour = "-"
        if loop.watchedSeconds > 0 {
            busy = (loop.busySeconds / loop.watchedSeconds * 100).fixed(1) + " %"
            perHour = (Double(loop.stalls) / (loop.watchedSeconds / 3_600)).fixed(2)
        }
        func latency(_ quantile: Double) -> String {
            guard loop.turns > 0 else { return "-" }
            guard let bound = loop.milliseconds(quantile: quantile) else { return "> 4.8 h" }
            return "< " + bound.duration
        }
        return [
            loop.label, (loop.watchedSeconds * 1_000).duration, String(loop.turns), busy, latency(0.5), latency(0.99),
            latency(1), String(loop.stalls), perHour, (loop.stallSeconds * 1_000).duration,
        ]
    }
}
