import CUnwindTestSupport
import Foundation
import Testing

/// Neither the helper nor the watchdog waits for the monitored thread on its processor.
@Suite(.serialized) struct CPUAffinityTests {
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

    /// The watchdog does so, where it would wait for the thread that it watches.
    @Test(.enabled(if: ProcessInfo.processInfo.activeProcessorCount > 1, "needs two processors"))
    func aThreadLeavesItsProcessorAndMayComeBack() throws {
        var result = cunwind_test_leaving_result()
        try #require(cunwind_test_leaving(&result))
        #expect(result.leaves_own)
        #expect(result.is_free, "the thread stayed bound")
        #expect(!result.leaves_another)
        #expect(!result.leaves_its_only)
        #expect(!result.leaves_unprobed, "what is not known to be allowed may kill")
    }
}
