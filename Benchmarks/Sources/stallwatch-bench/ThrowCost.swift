import CThrowCost
import Foundation
import Measuring
import StallWatch

/// What a C++ exception costs while the monitor has loaded libunwind, beside the same program without libunwind.
///
/// Also measures `throw-cost`, a program without StallWatch, under `stallwatch run`, if `STALLWATCH_TOOL` is the tool's path.
enum ThrowCost {
    /// Makes this program measure in itself, because the unwinder is chosen once per process.
    static let childArgument = "exceptions-in-this-process"

    /// The pairs of processes, which take turns.
    private static let pairs = 21
    private static let exceptions: Int32 = 100_000

    static func table() throws -> Table {
        let own = [try sibling("stallwatch-bench"), childArgument]
        let bare = [try sibling("throw-cost"), "\(exceptions)"]
        var rows = [
            try row(
                "in a program with a monitor", ["LANG=C"] + own, ["STALLWATCH_UNWINDER=builtin"] + own,
                reportsUnwinder: true)
        ]
        if let tool = ProcessInfo.processInfo.environment["STALLWATCH_TOOL"] {
            let reports = FileManager.default.temporaryDirectory.appendingPathComponent("exceptions-\(getpid())")
            defer { try? FileManager.default.removeItem(at: reports) }
            let run = ["LANG=C", tool, "run", "--quiet", "--output", reports.path, "--"]
            rows.append(try row("under stallwatch run / alone", run + bare, ["LANG=C"] + bare))
        }
        return Table(
            title: "A C++ exception thrown and caught 10 frames further out, medians of \(pairs) pairs of processes",
            columns: ["where", "with libunwind, us", "without, us", "ratio"], rows: rows)
    }

    /// Measures two commands by turns; where they print the unwinder, only the first may have libunwind.
    private static func row(
        _ what: String, _ with: [String], _ without: [String], reportsUnwinder: Bool = false
    ) throws -> [String] {
        var costs: [[Double]] = [[], []]
        for _ in 0..<pairs {
            for (index, command) in [with, without].enumerated() {
                let text = try output(of: "/usr/bin/env", command, showsErrors: false)
                let words = text.split(whereSeparator: \.isWhitespace)
                guard let cost = words.first.flatMap({ Double($0) }) else {
                    throw CannotMeasure("\(command) printed '\(text)'")
                }
                guard !reportsUnwinder || (words.last == "libunwind") == (index == 0) else {
                    throw CannotMeasure("another unwinder was loaded: '\(text)'")
                }
                costs[index].append(cost / 1e3)
            }
        }
        let ratios = Samples(zip(costs[0], costs[1]).map { $0 / $1 })
        return [what] + costs.map { Samples($0).median.digits(2) } + [ratios.median.digits(3)]
    }

    /// Prints the nanoseconds of an exception beside a started monitor, and the unwinder that is loaded.
    static func measureInThisProcess() {
        guard let monitor = try? StallMonitor(.init(threshold: .milliseconds(250))) else { return }
        guard (try? monitor.watch(.runLoop(.main, label: "main"))) != nil, (try? monitor.start()) != nil else { return }
        // The engine is made on the watchdog, before anything is captured.
        Thread.sleep(forTimeInterval: 0.5)
        print(throw_cost(exceptions), hasLibrary ? "libunwind" : "built-in")
        monitor.stop()
    }

    private static var hasLibrary: Bool {
        // String(contentsOfFile:) reads nothing of a file in /proc, whose size is 0.
        let maps = FileHandle(forReadingAtPath: "/proc/self/maps")?.readDataToEndOfFile() ?? Data()
        return String(decoding: maps, as: UTF8.self).contains("libunwind-")
    }
}
