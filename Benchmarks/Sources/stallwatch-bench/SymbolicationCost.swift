import Foundation
import Measuring
@_spi(Benchmarks) import StallSymbols
import StallWatch

/// The cost of names and lines of one stack, compared with `Backtrace.symbolicated()` of the toolchain's Runtime module.
///
/// A separate program (Sources/SymbolicatedStack) captures a stack and symbolicates it with Runtime. This program then
/// symbolicates the same frames of the same files.
enum SymbolicationCost {
    /// The number of runs of each program; Runtime needs some seconds for the large one.
    static let programs = [("small", rounds: 101), ("large", rounds: 5)]
    static let warmReports = 100

    static func table() throws -> Table {
        var table = Table(
            title: "Names and lines of a whole stack, medians",
            columns: [
                "executable", "runs", "MB", "frames", "with lines, Runtime", "with lines, StallWatch",
                "Runtime cold, ms",
                "StallWatch cold, ms", "cold ratio", "Runtime warm, ms", "StallWatch warm, ms",
            ]
        )
        // Loads libdw, once per process; otherwise only the first row would include that.
        let loaded = try measure(sibling("symbolicated-small"))
        for (name, rounds) in programs {
            let program = try sibling("symbolicated-" + name)
            let size = try FileManager.default.attributesOfItem(atPath: program)[.size] as? Int ?? 0
            let costs = try (0..<rounds).map { _ in try measure(program) }
            func median(_ path: KeyPath<Cost, Double>) -> Double { Samples(costs.map { $0[keyPath: path] }).median }
            let (theirs, ours) = (median(\.runtimeCold), median(\.cold))
            table.rows.append([
                name, "\(rounds)", (Double(size) / 1e6).digits(1), "\(costs[0].frames)", "\(costs[0].runtimeKnown)",
                "\(costs[0].known)", theirs.digits(1), ours.digits(2), (theirs / ours).digits(1),
                median(\.runtimeWarm).digits(1), median(\.warm).digits(3),
            ])
        }
        table.rows.append([
            "the first of the process, with libdw's loading", "1", "", "\(loaded.frames)", "", "", "",
            loaded.cold.digits(2), "", "", "",
        ])
        return table
    }

    /// The memory that debug information takes, and the memory that remains afterwards.
    static func memoryTable() throws -> Table {
        let program = try sibling("symbolicated-large")
        let report = try SymbolicationHost(program).report()
        _ = [report].symbolicated()
        giveBackFreeMemory()
        var rows: [[String]] = []
        let before = Resident.all.megabytes
        for round in 1...3 {
            for _ in 0..<10 { _ = [report].symbolicated() }
            rows.append(["after \(round * 10) reports", (Resident.all.megabytes - before).digits(1)])
        }
        giveBackFreeMemory()
        rows.append(["after malloc_trim(3)", (Resident.all.megabytes - before).digits(1)])
        rows.append(["the most that the process ever had", (Resident.most.megabytes - before).digits(1)])
        return Table(
            title: "Resident memory beyond that after the first report, large executable", columns: ["when", "MB"],
            rows: rows
        )
    }

    private struct Cost {
        var frames: Int
        var known: Int
        var runtimeKnown: Int
        var runtimeCold: Double
        var runtimeWarm: Double
        var cold: Double
        var warm: Double
    }

    private static func measure(_ program: String) throws -> Cost {
        let host = try SymbolicationHost(program)
        let report = try host.report()
        var began = now()
        let named = [report].symbolicated()[0]
        let cold = milliseconds(since: began)
        let many = [StallReport](repeating: report, count: 1 + warmReports)
        began = now()
        _ = many.prefix(1).symbolicated()
        let one = milliseconds(since: began)
        began = now()
        _ = many.symbolicated()
        let all = milliseconds(since: began)
        return Cost(
            frames: report.stacks[0].count, known: named.stacks[0].count { named.frames[$0].line != nil },
            runtimeKnown: host.known, runtimeCold: host.cold, runtimeWarm: host.warm, cold: cold,
            warm: (all - one) / Double(warmReports)
        )
    }

    /// malloc_trim(3), which Swift's module of the C library does not have.
    private static func giveBackFreeMemory() {
        guard let function = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(function, to: (@convention(c) (Int) -> Int32).self)(0)
    }

    private static func milliseconds(since began: UInt64) -> Double { Double(now() - began) / 1e6 }
}
