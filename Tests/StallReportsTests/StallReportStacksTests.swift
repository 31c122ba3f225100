import TestSupport
import Testing

@testable import StallReports

@Suite struct SampleSharesTests {
    @Test func withoutWeightsTheNearestValidSampleCounts() throws {
        var report = try StallReport.literal()
        #expect(report.sampleShares == [1, 0], "the second sample is invalid")
        report.samples[1].isValid = true
        let shares = report.sampleShares
        #expect(abs(shares[0] - (250.4 + 375.5) / 2 / 812.4) < 1e-9)
        #expect(abs(shares[0] + shares[1] - 1) < 1e-9)
    }

    @Test func weightsAreSharesOfTheirSum() throws {
        var report = try StallReport.literal()
        report.samples[0].weightMilliseconds = 30
        report.samples[1].weightMilliseconds = 10
        #expect(report.sampleShares == [0.75, 0.25])
    }

    @Test func aStallWithoutADurationHasShares() throws {
        var report = try StallReport.literal()
        report.durationMilliseconds = 0
        #expect(report.sampleShares == [1, 0])
        report.samples = []
        #expect(report.sampleShares.isEmpty)
    }

    @Test func theSummaryStatesTheCulpritsShare() throws {
        var report = try StallReport.literal()
        report.culprit?.share = 0.7143
        #expect(report.summary == "main stalled for 812 ms, 71 % of it in NoteStore.save(_:) (timer)")
        report.culprit?.share = 0.996
        #expect(report.summary == "main stalled for 812 ms in NoteStore.save(_:) (timer)")
    }
}
