import ArgumentParser

/// What statistics files say of the loops' health.
struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Sum up statistics files: turns, latencies and stalls of each loop.",
        discussion: """
            A monitor writes its statistics where the configuration's statisticsPath says, when it is stopped. Several files are \
            added up by the loops' labels. In directories every file *.json that has statistics in it is read.

            Examples:
              stallwatch stats notes-statistics.json
              stallwatch stats /var/log/notes --json
            """
    )

    @Argument(help: ArgumentHelp("Statistics files or directories (searched).", valueName: "path"))
    var paths: [String]

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let total = try StatisticsFile.sum(of: paths)
        if json {
            try StandardOutput.write(JSONOutput.bytes(StatisticsReport(total)))
        } else {
            try StandardOutput.write(Self.text(total, for: .standardOutput))
        }
    }

    /// The table, with sentences below it.
    static func text(_ total: StatisticsSum, for terminal: Terminal) -> String {
        var table = TextTable([
            .init("loop", isFlexible: true, style: .bold), .init("watched", .right), .init("turns", .right),
            .init("busy", .right, dropped: 3), .init("p50", .right, dropped: 2), .init("p99", .right),
            .init("max", .right),
            .init("stalls", .right), .init("per hour", .right, dropped: 1), .init("stalled", .right),
        ])
        for loop in total.loops { table.add(cells(loop)) }
        var text = total.loops.isEmpty ? "No loop was watched.\n" : table.text(for: terminal)
        text += "\n\(counted(total.stalls, "stall", "stalls")) in \(counted(total.files, "file", "files"))"
        let suppressed = total.suppressed.filter { $0.value > 0 }.sorted { $0.key < $1.key }
        if !suppressed.isEmpty {
            text += "; held back: " + suppressed.map { "\($0.value) \($0.key.printable)" }.joined(separator: ", ")
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

/// What `stats --json` prints.
struct StatisticsReport: Encodable {
    let files: Int
    let stalls: Int
    let suppressed: [String: Int]
    let reportsDropped: Int
    let reportsLost: Int
    let reportsRemoved: Int
    let reportsRecovered: Int
    let failedWrites: Int
    let lastWriteError: String?
    let loops: [Loop]

    struct Loop: Encodable {
        let label: String
        let watchedSeconds: Double
        let turns: UInt64
        let busySeconds: Double
        let stalls: Int
        let stallSeconds: Double
        /// Upper bounds, at most 12.5 % too large; left out without turns, and for what took over 4.8 hours.
        let p50Milliseconds: Double?
        let p99Milliseconds: Double?
        let maxMilliseconds: Double?
    }

    init(_ sum: StatisticsSum) {
        files = sum.files
        stalls = sum.stalls
        suppressed = sum.suppressed
        reportsDropped = sum.reportsDropped
        reportsLost = sum.reportsLost
        reportsRemoved = sum.reportsRemoved
        reportsRecovered = sum.reportsRecovered
        failedWrites = sum.failedWrites
        lastWriteError = sum.lastWriteError
        loops = sum.loops.map { loop in
            Loop(
                label: loop.label, watchedSeconds: loop.watchedSeconds, turns: loop.turns,
                busySeconds: loop.busySeconds, stalls: loop.stalls, stallSeconds: loop.stallSeconds,
                p50Milliseconds: loop.milliseconds(quantile: 0.5), p99Milliseconds: loop.milliseconds(quantile: 0.99),
                maxMilliseconds: loop.milliseconds(quantile: 1)
            )
        }
    }
}
