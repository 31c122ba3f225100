import CThrowCost
import Foundation
import Measuring

/// The cost of a C++ exception in this program, which links StallWatch, and in a program that does not.
enum ExceptionCost {
    static let count: Int32 = 20_000

    static var comparison: Comparison {
        Comparison(
            title: "A C++ exception thrown and caught 10 frames further out, mean of \(count)", iterations: 51,
            ways: [.init("with StallWatch linked") { throw_cost(count) }, .init("without StallWatch", elsewhere)],
            reference: "without StallWatch"
        )
    }

    /// The same in the program `throw-cost`.
    private static func elsewhere() throws -> Double {
        let text = try output(of: sibling("throw-cost"), ["\(count)"])
        guard let cost = Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw CannotMeasure("throw-cost printed '\(text)'")
        }
        return cost
    }
}
