import Foundation
import StallReports
import TestSupport

extension TemporaryDirectory {
    /// The names of the reports' files, sorted.
    var reportNames: [String] { names.filter { $0.hasPrefix("stall-") && $0.hasSuffix(".json") } }

    func report(_ name: String) throws -> StallReport {
        let data = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
        return try StallReport(jsonData: Array(data))
    }

    func reports() throws -> [StallReport] { try reportNames.map(report) }
}
