import TestSupport
import Testing

@testable import StallReports

@Suite struct ActivityTests {
    @Test func aSaturationIsDescribedWithItsShares() {
        let activity = StallReport.Activity(turnsPerSecond: 498.6, busyShare: 0.991, cpuShare: 0.5)
        #expect(activity.sentence == "Busy for 99 % of the time; 499 turns a second; 50 % of a CPU")
    }

    @Test func aSpinIsDescribedWithItsDescriptor() {
        let activity = StallReport.Activity(
            turnsPerSecond: 1_234_567, cpuShare: 0.367, readyDescriptor: "descriptor 7, pipe:[4711]")
        #expect(
            activity.sentence == "1,234,567 turns a second; 37 % of a CPU; descriptor 7, pipe:[4711], is always readable, "
                + "and the app does not read it")
        #expect(
            StallReport.Activity(turnsPerSecond: 0, isModeEmpty: true).sentence
                == "The mode has no sources, so each run of the loop returns at once")
    }

    @Test(arguments: [
        (.stall, "stalled and has not come back after", "stalled for"),
        (.saturation, "has been saturated for", "was saturated for"), (.spinning, "has been spinning for", "spun for"),
    ] as [(StallReport.Kind, String, String)])
    func theSummaryHasTheKindsVerb(kind: StallReport.Kind, ongoing: String, ended: String) throws {
        var report = try StallReport(jsonData: ReportFixture(number: 1).bytes)
        report.kind = kind
        report.state = .ongoing
        #expect(report.summary.hasPrefix("main \(ongoing) "))
        report.state = .ended
        #expect(report.summary.hasPrefix("main \(ended) "))
    }
}
