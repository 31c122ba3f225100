import Foundation
import Measuring

/// What StallWatch adds to a program's resident memory: two programs that differ by it alone.
enum MemoryCost {
    static func table() throws -> Table {
        // Both have said something before: what that brings in is no one's.
        let without = try resident("resident-without", ["", "0"])
        let names = try resident("resident-with", ["names", "0", "1000"])
        let lines = try resident("resident-with", ["lines", "1000"])
        let days = try resident("resident-with", ["names", "2880", "5760"])
        guard let base = without["after 0"] else { throw CannotMeasure("resident-without told nothing") }
        func added(_ what: String, _ values: [String: [Double]], _ when: String) -> [String] {
            [what] + zip(values[when] ?? [], base).map { (($0 - $1) / 1000).digits(1) }
        }
        return Table(
            title: "Memory added to a program with a run loop, which has \((base[0] / 1000).digits(1)) MB resident",
            columns: ["when", "resident, MB", "of it in no file, MB", "most that was resident, MB"],
            rows: [
                added("linked, and started with one loop", names, "after 0"),
                added("after 1,000 stalls, with function names", names, "after 1000"),
                added("after 1,000 stalls, with lines", lines, "after 1000"),
                added("after a day with a stall every 30 s (2,880), with names", days, "after 2880"),
                added("after two such days", days, "after 5760"),
            ]
        )
    }

    /// What the program prints: lines of a name and three numbers of kilobytes.
    private static func resident(_ program: String, _ arguments: [String]) throws -> [String: [Double]] {
        var values: [String: [Double]] = [:]
        for line in try output(of: sibling(program), arguments).split(separator: "\n") {
            let parts = line.split(separator: ":")
            let numbers = parts.dropFirst().compactMap { Double($0) }
            guard numbers.count == 3 else { throw CannotMeasure("\(program) printed '\(line)'") }
            values[String(parts[0])] = numbers
        }
        return values
    }
}
