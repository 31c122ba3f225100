import Foundation
import StallReports
import TestSupport
import Testing
import TextOutput

@testable import StallWatchCLI

/// Feeds a hundred folders of damaged reports to everything that reads reports: nothing crashes, and each report is either
/// read or named.
@Suite struct MutationTests {
    @Test(arguments: 0..<8) func damagedReportsDoNotCrashTheTool(part: Int) throws {
        let count = rounds(12)
        for seed in part * count..<(part + 1) * count {
            var generator = SeededGenerator(seed: UInt64(seed))
            let scratch = try TemporaryDirectory()
            for number in 0..<2 {
                let report = ReportFixture(number: number)
                try scratch.write("stall-\(number).json", Self.damage(report.bytes, &generator))
            }
            let lines = (3..<5).map { ReportFixture(number: $0).line }.joined()
            try scratch.write("stalls.ndjson", Self.damage(Array(lines.utf8), &generator))
            try readEverything(scratch.path)
        }
    }

    private func readEverything(_ path: String) throws {
        var complaints = 0
        var reports = ReadReports(files: try ReportFiles(paths: [path]), filter: ReportFilter(), isStrict: false)
        reports.complain = { text in
            if text.hasPrefix("Skipped ") { complaints += 1 }
            // A damaged id may be another report's.
            if text.contains("given twice") { complaints += text.split(separator: " ").first.flatMap { Int($0) } ?? 0 }
        }
        var groups = StallGroups()
        try unlessAllAreFaulty { try reports.forEach(.summary) { groups.add($0, $1) } }
        let documents = groups.reports + complaints
        _ = TopTable(groups: groups, shown: groups.sorted(by: .total)).text(for: Terminal(width: 100))
        _ = JSONOutput.bytes(TopReport(groups, shown: groups.all))

        complaints = 0
        var whole = 0
        try unlessAllAreFaulty {
            try reports.forEach(.whole) { report, origin in
                whole += 1
                let view = ReportView(report: report, origin: origin, terminal: Terminal(width: 80))
                #expect(!view.text.isEmpty && !view.brief.isEmpty)
                var missing = MissingImages()
                missing.add(report)
                #expect(!missing.text(for: Terminal()).isEmpty)
            }
        }
        #expect(whole + complaints == documents)
        // A summary decodes fewer fields, so it never refuses more.
        #expect(whole <= groups.reports)
    }

    /// The error that there is nothing to read is a valid answer.
    private func unlessAllAreFaulty(_ body: () throws -> Void) throws {
        do { try body() } catch let failure as CommandFailure where [.faultyData, .nothing].contains(failure.status) {}
    }

    /// Flips bits, removes or inserts bytes, or cuts the end off, one to four times.
    static func damage(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 0...4, using: &generator) where bytes.count > 2 {
            let place = Int.random(in: 0..<bytes.count - 1, using: &generator)
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            case 1: bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
            case 2: bytes.removeSubrange(place..<min(place + Int.random(in: 1...20, using: &generator), bytes.count))
            case 3: bytes.removeSubrange(place...)
            case 4: bytes.insert(contentsOf: bytes[place..<min(place + 30, bytes.count)], at: place)
            default:
                // Replaces a number: indices get out of range, counts get too large.
                guard let digit = bytes[place...].firstIndex(where: { (0x30...0x39).contains($0) }) else { continue }
                let number = ["-1", "99999999999999999999", "1e400", "0.5", "9007199254740993"]
                    .randomElement(using: &generator)
                bytes.replaceSubrange(digit...digit, with: Array((number ?? "0").utf8))
            }
        }
        return bytes
    }
}
