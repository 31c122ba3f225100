import CCaptureCost
import Foundation
import Measuring

/// What stacks cost with libunwind and with the built-in unwinder, side by side.
enum UnwinderCost {
    /// Makes this program measure in itself, because the unwinder is chosen once per process.
    static let childArgument = "unwinder-in-this-process"

    /// The number of processes per unwinder, by turns.
    private static let processes = 9
    /// The captures of one process, of which the first is cold.
    private static let captures = 200
    /// The depth of the captured stack, in bytes.
    private static let stackBytes = 32 << 10

    static func table() throws -> Table {
        let unwinders = [("libunwind", ["LANG=C"]), ("built-in", ["STALLWATCH_UNWINDER=builtin"])]
        let own = try sibling("stallwatch-bench")
        var runs: [[[Double]]] = [[], []]
        for _ in 0..<processes {
            for (index, unwinder) in unwinders.enumerated() {
                runs[index].append(try measured(unwinder.1 + [own, childArgument]))
            }
        }
        let memory = try unwinders.map { unwinder in
            try MemoryCost.median(of: "resident-with", ["names", "0"], environment: unwinder.1)
        }
        let medians = runs.map { runs in (0..<4).map { column in Samples(runs.map { $0[column] }).median } }
        func row(_ what: String, _ values: [Double], digits: Int = 1) -> [String] {
            [what] + values.map { $0.digits(digits) } + [(values[0] / values[1]).digits(2)]
        }
        return Table(
            title: "Stacks of \(Int(medians[0][0])) frames by each unwinder, medians of \(processes) processes",
            columns: ["what"] + unwinders.map(\.0) + ["ratio"],
            rows: [
                row("creation of an engine, us", medians.map { $0[1] }),
                row("first capture of a blocked thread, us", medians.map { $0[2] }),
                row("a later one, us", medians.map { $0[3] }),
                row("a later one per frame, us", medians.map { $0[3] / $0[0] }, digits: 2),
                row("resident before the first stall, MB", memory.map { $0[0] }, digits: 2),
                row("of it in no file, MB", memory.map { $0[1] }, digits: 2),
            ]
        )
    }

    /// The numbers of a process; one in which a capture came too late is started again, at most twice.
    private static func measured(_ command: [String]) throws -> [Double] {
        for _ in 0..<3 {
            let text = try output(of: "/usr/bin/env", command)
            let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            if numbers.count == 4 { return numbers }
        }
        throw CannotMeasure("a capture failed in three processes")
    }

    /// Prints the number of frames, and the microseconds of an engine's creation, a first and a later capture.
    static func measureInThisProcess() {
        let creation = engine_creation_cost()
        var (held, whole) = ([UInt64](repeating: 0, count: captures), [UInt64](repeating: 0, count: captures))
        let frames = capture_cost(CAPTURE_READ, stackBytes, captures, &held, &whole)
        guard frames > 0, creation > 0 else { return }
        let later = Samples(whole.dropFirst().map { Double($0) }).median
        print(frames, Double(creation) / 1e3, Double(whole[0]) / 1e3, later / 1e3)
    }
}
