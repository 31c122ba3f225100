import TestSupport
import Testing

@testable import StallReports

@Suite struct StallReportSummaryTests {
    @Test func theSummaryOfAnEndedStallIsOneSentence() throws {
        #expect(try StallReport.literal().summary == "main stalled for 812 ms in NoteStore.save(_:) (timer)")
    }

    @Test func theSummaryOfAnOngoingStallSaysSo() throws {
        var report = try StallReport.literal()
        report.state = .ongoing
        report.culprit = nil
        report.callout = nil
        #expect(report.summary == "main stalled and has not come back after 812 ms")
    }

    @Test func functionsAreNamedInnermostFirst() throws {
        let report = try StallReport.literal()
        #expect(
            report.functionNames(of: report.samples[0])
                == ["pthread_mutex_lock", "NoteStore.save(_:)", "libc.so.6+0x3e9f10"]
        )
        #expect(report.functionNames(of: report.samples[1]).isEmpty)
    }
}
