import CUnwindTestSupport
import Foundation
import Testing

/// The watchdog's thread asks for short slices.
@Suite struct SchedulingLatencyTests {
    private static var hasSlices: Bool {
        let version = ProcessInfo.processInfo.operatingSystemVersion
        return (version.majorVersion, version.minorVersion) >= (6, 12)
    }

    @Test(.enabled(if: hasSlices, "needs Linux 6.12"))
    func `a short slice keeps policy and nice value`() {
        var before = cunwind_test_scheduling()
        var after = cunwind_test_scheduling()
        #expect(cunwind_test_short_slice(7, &before, &after))
        #expect(before.slice_nanoseconds > after.slice_nanoseconds)
        #expect(after.slice_nanoseconds == 500_000)
        #expect(after.nice == 7)
        #expect(after.policy == before.policy)
    }

    /// A service manager's filter for "@resources" covers this call, and its default action kills the process.
    @Test(arguments: [false, true])
    func `a filter against sched_setattr is survived`(kills: Bool) {
        #expect(cunwind_test_short_slice_under_filter(kills) == 0)
    }
}

/// Neither the helper nor the watchdog waits for the monitored thread on its processor.
@Suite(.serialized) struct CPUAffinityTests {
    @Test func `the helper stays on its maker's processor`() throws {
        var result = cunwind_test_placement_result()
        try #require(cunwind_test_placement(&result))
        #expect(result.captures > 0)
        #expect(result.seen > 0)
        #expect(result.bound == result.seen)
        #expect(result.roams, "the thread that made the helpers stayed bound")
    }

    /// A service manager's filter for "@resources" covers this call, and its default action kills the process.
    @Test(arguments: [false, true])
    func `a filter against affinity does not prevent captures`(kills: Bool) {
        #expect(cunwind_test_stop_under_filter(kills) == 0)
    }

    /// The watchdog leaves the monitored thread's processor so as not to wait for it.
    @Test(.enabled(if: ProcessInfo.processInfo.activeProcessorCount > 1, "needs two processors"))
    func `a thread leaves its processor and may come back`() throws {
        var result = cunwind_test_leaving_result()
        try #require(cunwind_test_leaving(&result))
        #expect(result.leaves_own)
        #expect(result.is_free, "the thread stayed bound")
        #expect(!result.leaves_another)
        #expect(!result.leaves_its_only)
        #expect(!result.leaves_unprobed, "what is not known to be allowed may kill")
    }
}
