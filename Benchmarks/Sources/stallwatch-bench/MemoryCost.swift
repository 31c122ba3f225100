import Foundation
import Measuring

/// The resident memory that StallWatch adds, measured with two programs that differ only in StallWatch.
enum MemoryCost {
    /// The number of starts of both programs; single starts differ by a few hundred kilobytes.
    static let starts = 9

    static func table() throws -> Table {
        // Both programs have printed a line before, so its memory is in both.
        let without = try median(of: "resident-without", ["", "0"])
        let started = try median(of: "resident-with", ["names", "0"])
        let names = try resident("resident-with", ["names", "1000"])
        let lines = try resident("resident-with", ["lines", "1000"])
        let days = try resident("resident-with", ["names", "2880", "5760"])
        func added(_ what: String, _ values: [Double]?) -> [String] {
            [what] + zip(values ?? [], without).map { ($0 - $1).digits(2) }
        }
        return Table(
            title: "Memory added to a program with a run loop, which has \(without[0].digits(1)) MB resident",
            columns: ["when", "resident, MB", "of it in no file, MB", "most that was resident, MB"],
            rows: [
                added("linked, and started with one loop (medians of \(starts))", started),
                added("after 1,000 stalls, with function names", names["after 1000"]),
                added("after 1,000 stalls, with lines", lines["after 1000"]),
                added("after a day with a stall every 30 s (2,880), with names", days["after 2880"]),
                added("after two such days", days["after 5760"]),
            ]
        )
    }

    /// Returns the medians of the last lines of several starts, with more variables in the environment.
    static func median(of program: String, _ arguments: [String], environment: [String] = []) throws -> [Double] {
        let runs = try (0..<starts).map { _ in try resident(program, arguments, environment)["after 0"] ?? [] }
        guard runs.allSatisfy({ $0.count == Resident.allCases.count }) else {
            throw CannotMeasure("\(program) told nothing")
        }
        return Resident.allCases.indices.map { column in Samples(runs.map { $0[column] }).median }
    }

    /// Returns the program's output: lines with a name and three numbers of megabytes.
    private static func resident(
        _ program: String, _ arguments: [String], _ environment: [String] = []
    ) throws -> [String: [Double]] {
        var values: [String: [Double]] = [:]
        let text = try output(of: "/usr/bin/env", environment + [sibling(program)] + arguments)
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":")
            let numbers = parts.dropFirst().compactMap { Double($0) }
            guard numbers.count == Resident.allCases.count else { throw CannotMeasure("\(program) printed '\(line)'") }
            values[String(parts[0])] = numbers
        }
        return values
    }
}
