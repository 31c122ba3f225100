import CUnwindTestSupport
import Testing

/// The helper does not take the monitored thread's place on its processor.
@Suite(.serialized) struct HelperPlacementTests {
    @Test func theHelperStaysWhereItsMakerIs() throws {
        var result = cunwind_test_placement_result()
        try #require(cunwind_test_placement(&result))
        #expect(result.captures > 0)
        #expect(result.seen > 0)
        #expect(result.bound == result.seen)
        #expect(result.roams, "the thread that made the helpers stayed bound")
    }

    /// Service managers' filters for "resources" have the call in them, and kill by default.
    @Test(arguments: [false, true])
    func whereAFilterForbidsItTheThreadIsCapturedAllTheSame(kills: Bool) {
        #expect(cunwind_test_stop_under_filter(kills) == 0)
    }
}
