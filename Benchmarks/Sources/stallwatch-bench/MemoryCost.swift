import Foundation
import Measuring

/// What StallWatch adds to a program's resident memory: two programs that differ by it alone.
enum MemoryCost {
    static func table() throws -> Table {
        let without = try resident("resident-without", [])
        let names = try resident("resident-with", ["names", "1000"])
        let lines = try resident("resident-with", ["lines", "1000"])
        let day = try resident("resident-with", ["names", "2880", "5760"])
        guard let base = without["loop runs"] else { throw CannotMeasure("resident-without told nothing") }
        func added(_ when: String, _ values: [String: Double], _ key: String) -> [String] {
            [when, values[key].map { (($0 - base) / 1000).digits(1) } ?? "?"]
        }
        return Table(
            title: "Resident memory added to a program with a run loop, which has \((base / 1000).digits(1)) MB",
            columns: ["when", "MB"],
            rows: [
                added("linked, and started with one loop", names, "started"),
                added("after 1,000 stalls, with function names", names, "after 1000"),
                added("the most that it had until then", names, "most after 1000"),
                added("after 1,000 stalls, with lines", lines, "after 1000"),
                added("the most that it had until then", lines, "most after 1000"),
                added("after a day with a stall every 30 s (2,880), with names", day, "after 2880"),
                added("after two such days", day, "after 5760"),
            ]
        )
    }

    /// What the program prints: lines of a name and kilobytes.
    private static func resident(_ program: String, _ arguments: [String]) throws -> [String: Double] {
        var values: [String: Double] = [:]
        for line in try output(of: sibling(program), arguments).split(separator: "\n") {
            let parts = line.split(separator: ":")
            guard parts.count == 2, let value = Double(parts[1]) else { throw CannotMeasure("\(program): '\(line)'") }
            values[String(parts[0])] = value
        }
        return values
    }
}
