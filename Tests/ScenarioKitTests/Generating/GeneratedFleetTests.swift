import ArgumentParser
import StallReports
import Testing

@testable import stallwatch_scenarios

@Suite struct GeneratedFleetTests {
    private func reports(seed: UInt64 = 3, _ count: Int = 200) -> [GeneratedFleet.Report] {
        var fleet = GeneratedFleet(seed: seed, reports: count, kinds: 20, hosts: 3)
        var reports: [GeneratedFleet.Report] = []
        while let report = fleet.next() { reports.append(report) }
        return reports
    }

    @Test func everyReportIsValid() throws {
        let made = reports()
        #expect(made.count == 200)
        for report in made {
            let decoded = try StallReport(jsonData: report.json)
            #expect(decoded.fileName == report.fileName)
            #expect(decoded.fingerprint == Fingerprint(decoded).text)
            let cause = try #require(decoded.cause)
            let parts = cause.onCPUMilliseconds + cause.runQueueMilliseconds + cause.blockedMilliseconds
            #expect(abs(parts - decoded.durationMilliseconds) < 0.001)
            #expect(
                abs(decoded.samples.compactMap(\.weightMilliseconds).reduce(0, +) - decoded.durationMilliseconds)
                    < 0.001)
            // No placeholder is left.
            #expect(!String(decoding: report.json, as: UTF8.self).contains("@"))
            #expect(!String(decoding: report.json, as: UTF8.self).contains("90000000000"))
        }
    }

    @Test func theSameNumbersGiveTheSameReports() {
        #expect(reports().map(\.json) == reports().map(\.json))
        #expect(reports().map(\.json) != reports(seed: 4).map(\.json))
    }

    @Test func theFleetHasWhatQueriesLookFor() throws {
        let decoded = try reports(2_000).map { try StallReport(jsonData: $0.json) }
        #expect(Set(decoded.map { $0.metadata["version"] }) == ["1.4.2", "1.5.0"])
        #expect(Set(decoded.map(\.process.hostname)).count == 3)
        let groups = Dictionary(grouping: decoded, by: \.fingerprint)
        #expect(groups.count > 15)
        // Some kind is new on the last day.
        #expect(groups.values.contains { $0.allSatisfy { $0.startedAt.description.hasPrefix("2026-11-14") } })
        #expect(decoded.contains { $0.repeats > 0 })
    }

    @Test(arguments: [
        ["--reports", "5"], ["--reports", "5", "--output", "a", "--ndjson", "b"], ["--reports", "-1", "--output", "a"],
        ["--reports", "5", "--output", "a", "--kinds", "0"], ["--reports", "5", "--output", "a", "--hosts", "100001"],
        ["--reports", "0", "--output", "a", "--repeating"], ["--reports", "5", "--ndjson", "a", "--repeating"],
    ])
    func wrongArgumentsAreRefused(arguments: [String]) {
        #expect(throws: (any Error).self) { try GenerateCommand.parse(arguments) }
    }
}
