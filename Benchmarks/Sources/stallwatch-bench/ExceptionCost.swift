import CThrowCost
import Foundation

/// What a C++ exception costs in this program, which links StallWatch, and in one that does not.
enum ExceptionCost {
    static let rounds = 51

    static func table() throws -> Table {
        var with: [Double] = []
        var without: [Double] = []
        _ = throw_cost(1000)
        // Turn by turn, so that a slow moment of the machine meets both.
        for _ in 0..<rounds {
            with.append(throw_cost(20_000))
            without.append(try costElsewhere())
        }
        let (own, other) = (Samples(with).median, Samples(without).median)
        return Table(
            title: "A C++ exception thrown and caught 10 frames further out, median of \(rounds)",
            columns: ["program", "ns", "ratio"],
            rows: [
                ["without StallWatch", other.digits(0), "1.00"],
                ["with StallWatch linked", own.digits(0), (own / other).digits(2)],
            ]
        )
    }

    /// The same in the program `throw-cost`, which lies beside this one.
    private static func costElsewhere() throws -> Double {
        let process = Process()
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
            .appendingPathComponent("throw-cost")
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard let cost = Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw CannotMeasure(description: "throw-cost printed '\(text)': build it, too")
        }
        return cost
    }
}
