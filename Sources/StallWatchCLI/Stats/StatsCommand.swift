import ArgumentParser
import StallReports
import TextOutput

struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Sum up statistics files: turns, latencies and stalls of each loop.",
        discussion: """
            When a monitor stops, it writes its statistics to the configuration's output .statistics(path). Several \
            files are added up by loop label. The bars below the table are each loop's turns by duration. In a directory, \
            every *.json file with statistics is read.

            Examples:
              stallwatch stats notes-statistics.json
              stallwatch stats /var/log/notes --json
            """
    )

    @Argument(help: ArgumentHelp("Statistics files or directories (searched). Default: stalls.", valueName: "path"))
    var paths: [String] = []

    @OptionGroup var output: TextOrJSONOptions

    func run() throws {
        let sum = try StatisticsSum(of: ReportFiles.paths(paths))
        try output.write(Joined(base: sum.total, others: ["files": sum.files])) { Self.text(sum, for: $0) }
    }

    static func text(_ sum: StatisticsSum, for terminal: Terminal) -> String {
        let total = sum.total
        var table = TextTable([
            .init("loop", isFlexible: true, style: .bold), .init("watched", .right), .init("turns", .right),
            .init("busy", .right, dropped: 3), .init("p50", .right, dropped: 2), .init("p99", .right),
            .init("max", .right),
            .init("stalls", .right), .init("per hour", .right, dropped: 1), .init("stalled", .right),
        ])
        for loop in total.loops { table.add(cells(loop)) }
        var text = total.loops.isEmpty ? "No loop was watched.\n" : table.text(for: terminal)
        for loop in total.loops { text += TurnHistogramText.text(loop, for: terminal) }
        text += "\n\(counted(total.stalls, "stall", "stalls")) in \(counted(sum.files, "file", "files"))"
        if !total.suppressed.all.isEmpty {
            let counts = total.suppressed.all.map { "\($0.count) \($0.reason.printable)" }
            text += "; suppressed: " + counts.joined(separator: ", ")
        }
        text += ".\n"
        for loop in total.loops {
            guard let delay = loop.longestTimerDelay else { continue }
            text += "Late timers of \(loop.label.printable): \(loop.lateTimers), by up to \(delay.text)\n"
        }
        for (problem, count) in [
            ("Stalls that were over when the watchdog looked", total.missed),
            ("Reports that a slow reader missed", total.reportsDropped),
            ("Reports that a sink missed", total.reportsLost),
            ("Reports removed to stay inside a quota", total.reportsRemoved),
            ("Reports left by processes that were gone", total.reportsRecovered),
            ("Writes that failed", total.failedWrites),
            ("Operations that were not watched", total.unwatchedOperations),
        ] where count > 0 {
            text += "\(problem): \(count)\n"
        }
        if let error = total.lastWriteError { text += "The last write that failed: \(error.printable)\n" }
        return text
    }

    private static func cells(_ loop: LoopStatistics) -> [String] {
        let isWatched = loop.watchedTime > .zero
        // A heartbeat's turns are its waits.
        let busy = isWatched && loop.utilization != nil ? loop.busyTime / loop.watchedTime : nil
        func latency(_ quantile: Double) -> String {
            loop.turns > 0 ? loop.turnDuration(quantile: quantile).map { "< " + $0.text } ?? "> 4.8 h" : "-"
        }
        return [
            loop.label, loop.watchedTime.text, String(loop.turns),
            busy.map { ($0 * 100).fixed(1) + " %" } ?? "-", latency(0.5), latency(0.99),
            latency(1), String(loop.stalls), isWatched ? loop.stallsPerHour.fixed(2) : "-", loop.stallTime.text,
        ]
    }
}

extension Duration {
    var text: String { (self / .milliseconds(1)).duration }
}

enum TurnHistogramText {
    private static let width = 40

    /// A number of turns, and their upper bound; `nil` for what is longer than 4.8 hours.
    private typealias Row = (below: Duration?, turns: UInt64)

    /// Adds up a loop's turns by power of two, from the shortest to the longest; there are rows without turns in between.
    private static func rows(_ latency: [LatencyBucket]) -> [Row] {
        var counts: [Int: UInt64] = [:]
        var beyond: UInt64 = 0
        for bucket in latency where bucket.turns > 0 {
            if let bound = bucket.upperBound {
                counts[power(of: bound), default: 0] &+= bucket.turns
            } else {
                beyond &+= bucket.turns
            }
        }
        var rows: [Row] = []
        if let first = counts.keys.min(), let last = counts.keys.max() {
            rows = (first...last).map { (least * (1 << $0), counts[$0] ?? 0) }
        }
        if beyond > 0 { rows.append((nil, beyond)) }
        return rows
    }

    private static let least = Duration.nanoseconds(1_024)

    /// The least power of two, times ``least``, not below `bound`: bounds are powers of two nanoseconds, or eighths.
    private static func power(of bound: Duration) -> Int {
        var power = 0
        while power < 62, least * (1 << power) < bound * 0.999_999 { power += 1 }
        return power
    }

    /// The rows with bars, after the loop's label; empty for a loop without turns.
    static func text(_ loop: LoopStatistics, for terminal: Terminal) -> String {
        let rows = rows(loop.latency)
        guard let most = rows.map(\.turns).max(), most > 0 else { return "" }
        var table = TextTable([
            .init("turns of \(loop.label)", .right), .init("count", .right), .init("", isFlexible: true),
        ])
        for row in rows {
            // A row with turns has a bar, however few they are.
            let length = row.turns == 0 ? 0 : max(Int((Double(row.turns) / Double(most) * Double(width)).rounded()), 1)
            table.add([
                row.below.map { "< \($0.text)" } ?? "> 4.8 h", String(row.turns), String(repeating: "█", count: length),
            ])
        }
        let threshold = loop.threshold > .zero ? "Threshold: \(loop.threshold.text)\n" : ""
        return "\n" + table.text(for: terminal) + threshold
    }
}
