import ArgumentParser
import TextOutput

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

    @OptionGroup var output: TextOrJSONOptions

    func run() throws {
        let total = try StatisticsFile.sum(of: paths)
        try output.write(total) { Self.text(total, for: $0) }
    }

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

    private static func cells(_ loop: StatisticsSum.Loop) -> [String] {
        let isWatched = loop.watchedSeconds > 0
        let busy = isWatched ? (loop.busySeconds / loop.watchedSeconds * 100).fixed(1) + " %" : "-"
        let perHour = isWatched ? (Double(loop.stalls) / (loop.watchedSeconds / 3_600)).fixed(2) : "-"
        func latency(_ bound: Double?) -> String {
            loop.turns > 0 ? bound.map { "< " + $0.duration } ?? "> 4.8 h" : "-"
        }
        return [
            loop.label, (loop.watchedSeconds * 1_000).duration, String(loop.turns), busy, latency(loop.p50Milliseconds),
            latency(loop.p99Milliseconds), latency(loop.maxMilliseconds), String(loop.stalls), perHour,
            (loop.stallSeconds * 1_000).duration,
        ]
    }
}

/// The durations of a loop's turns as bars, one for each power of two.
enum TurnHistogramText {
    private static let width = 40

    /// A number of turns, and their upper bound in milliseconds; `nil` for what is longer than 4.8 hours.
    private typealias Row = (below: Double?, turns: UInt64)

    /// Adds up a loop's turns, given by upper bound in microseconds, by power of two, from the shortest to the longest.
    ///
    /// There are rows without turns in between.
    private static func rows(_ latency: [Double: UInt64]) -> [Row] {
        var counts: [Int: UInt64] = [:]
        var beyond: UInt64 = 0
        for (bound, turns) in latency where turns > 0 {
            if bound.isFinite { counts[power(of: bound), default: 0] &+= turns } else { beyond &+= turns }
        }
        var rows: [Row] = []
        if let first = counts.keys.min(), let last = counts.keys.max() {
            rows = (first...last).map { (Double(1 << UInt64($0)) * 1.024 / 1_000, counts[$0] ?? 0) as Row }
        }
        if beyond > 0 { rows.append((nil, beyond)) }
        return rows
    }

    /// The least power of two, times 1.024, not below `bound`: bounds are powers of two nanoseconds, or eighths.
    private static func power(of bound: Double) -> Int {
        var power = 0
        while power < 62, Double(1 << UInt64(power)) * 1.024 < bound * 0.999_999 { power += 1 }
        return power
    }

    /// The rows with bars, after the loop's label; empty for a loop without turns.
    static func text(_ loop: StatisticsSum.Loop, for terminal: Terminal) -> String {
        let rows = rows(loop.latency)
        guard let most = rows.map(\.turns).max(), most > 0 else { return "" }
        var table = TextTable([
            .init("turns of \(loop.label)", .right), .init("count", .right), .init("", isFlexible: true),
        ])
        for row in rows {
            // A row with turns has a bar, however few they are.
            let length = row.turns == 0 ? 0 : max(Int((Double(row.turns) / Double(most) * Double(width)).rounded()), 1)
            table.add([
                row.below.map { "< \($0.duration)" } ?? "> 4.8 h", String(row.turns),
                String(repeating: "█", count: length),
            ])
        }
        var text = "\n" + table.text(for: terminal)
        if let threshold = loop.thresholdMilliseconds {
            text += "Threshold: \(threshold.duration)\n"
        }
        return text
    }
}
