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
