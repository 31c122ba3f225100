import Synchronization
import Testing

@testable import StallWatch

@Suite struct PrivacyTests {
    private func run(_ settings: Reporter.Settings) throws -> [StallReport] {
        let scratch = try TemporaryDirectory()
        _ = try withReporter([.directory(scratch.path)], settings: settings) { reporter in
            let record = StallRecord.fixture(function: 1, state: .ongoing)
            reporter.submit(record)
            #expect(eventually { scratch.names.count == 1 })
            // Whoever looks while the stall lasts must not see more than afterwards.
            let seen = try scratch.reports()
            #expect(seen.allSatisfy { $0.metadata == [:] || $0.metadata["redacted"] == "yes" })
            reporter.submit(record.after(milliseconds: 900))
        }
        return try scratch.reports()
    }

    @Test func pathsCanBeLeftOut() throws {
        var settings = Reporter.Settings.fixture()
        settings.pathStyle = .fileNames
        let report = try #require(try run(settings).first)
        #expect(report.images.map(\.path) == ["app"])
        #expect(report.process.executable == report.process.name)
        #expect(!String(decoding: report.jsonData(), as: UTF8.self).contains("/bin/"))
    }

    @Test func redactionSeesEveryReportAndWhatItIsKnownByStays() throws {
        var settings = Reporter.Settings.fixture()
        settings.redact = { report in
            report.process.hostname = "somewhere"
            report.metadata = ["redacted": "yes"]
            report.id = "changed"
            report.state = .abandoned
            report.startedAt = Timestamp(microsecondsSince1970: 0)
        }
        let reports = try run(settings)
        #expect(reports.map(\.process.hostname) == ["somewhere"])
        #expect(reports.map(\.metadata) == [["redacted": "yes"]])
        #expect(reports.map(\.state) == [.ended])
        #expect(reports.map(\.id) != ["changed"])
    }

    /// A mistake of the app's must not give away what it wanted to keep.
    @Test func aReportThatRedactionBreaksKeepsItsTimesOnly() throws {
        var settings = Reporter.Settings.fixture()
        settings.redact = { report in
            report.metadata = ["redacted": "yes"]
            report.frames = []
        }
        let report = try #require(try run(settings).first)
        #expect(report.durationMilliseconds == 900)
        #expect(report.frames.isEmpty && report.samples.isEmpty && report.images.isEmpty)
        #expect(report.culprit == nil)
        #expect(report.process.hostname == "")
        #expect(report.metadata == [:])
    }
}
