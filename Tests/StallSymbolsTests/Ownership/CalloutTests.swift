import Testing

@testable import StallReports
@testable import StallSymbols

@Suite struct CalloutTests {
    @Test(arguments: [
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__", StallReport.Callout.timer),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION__", .source0),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION__", .source1),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__", .performedBlock),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION__", .observer),
        ("__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__", .mainQueue),
    ])
    func theFunctionThatMakesTheCalloutShowsItsKind(symbol: String, callout: StallReport.Callout) {
        #expect(StallReport.Callout(symbols: ["$s5notes4workyyF", nil, symbol, "__CFRunLoopRun"]) == callout)
    }

    @Test func theInnermostCalloutCounts() {
        let symbols = [
            "work", "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__", "__CFRunLoopRun", "nested",
            "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__",
        ]
        #expect(StallReport.Callout(symbols: symbols) == .performedBlock)
    }

    @Test func aStackMayHaveNoCallout() {
        #expect(StallReport.Callout(symbols: ["work", nil, "main"]) == nil)
        #expect(StallReport.Callout(symbols: []) == nil)
    }
}
