import Foundation
import Measuring
import StallWatch
import Synchronization

/// The cost of encoding a report as JSON, and of Foundation's JSONSerialization for the same values.
enum EncodingCost {
    static let count = 100

    static var comparison: Comparison {
        let report = Result { try reportOfAStall() }
        return Comparison(
            title: "A report as JSON, mean of \(count)", iterations: 15,
            ways: [
                .init("StallReport.jsonData()") {
                    let report = try report.get()
                    return meanNanoseconds(count) { precondition(!report.jsonData().isEmpty) }
                },
                .init("StallReport(jsonData:)") {
                    let bytes = try report.get().jsonData()
                    return meanNanoseconds(count) { precondition((try? StallReport(jsonData: bytes)) != nil) }
                },
                .init("JSONSerialization.data") {
                    let object = try JSONSerialization.jsonObject(with: Data(report.get().jsonData()))
                    return meanNanoseconds(count) {
                        let data = try? JSONSerialization.data(
                            withJSONObject: object, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
                        precondition(data?.isEmpty == false)
                    }
                },
            ],
            reference: "JSONSerialization.data"
        )
    }

    /// A report of a real stall of this program, with names and lines.
    private static func reportOfAStall() throws -> StallReport {
        let probe = LoopProbe(label: "measured")
        let found = Mutex<StallReport?>(nil)
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(20), reports: .none)
        configuration.onStallEnded = { report in found.withLock { $0 = report } }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        probe.beginTurn()
        Thread.sleep(forTimeInterval: 0.2)
        probe.endTurn()
        // Delivers every report before it returns.
        monitor.stop()
        guard let report = found.withLock({ $0 }) else { throw CannotMeasure("no stall was reported") }
        return report
    }
}
