import CUnwind
import CUnwindTestSupport
import Foundation
import Testing

/// Captures threads as fast as possible while they call functions that take locks.
@Suite(.serialized) struct CaptureStressTests {
    /// The duration in seconds; `STALLWATCH_STRESS_SECONDS` overrides it.
    static let seconds = ProcessInfo.processInfo.environment["STALLWATCH_STRESS_SECONDS"].flatMap(UInt32.init) ?? 60

    /// The maximum percentage of captures that do not reach the thread's start (measured: 2 of 5,960).
    static let incompletePercentage: UInt64 = 1
    /// The maximum percentage of captures whose helper gets no CPU in time (measured: none of 5,960).
    ///
    /// Under a sanitizer, or where the host takes its processors away, there are some.
    static let timedOutPercentage: UInt64 = 5

    @Test func nothingIsLostStuckOrLeftBehind() {
        let result = cunwind_test_stress(Self.seconds * 1000)
        print("stress: \(result)")
        #expect(result.incomplete * 100 <= result.captures * Self.incompletePercentage)
        #expect(result.timed_out * 100 <= result.captures * Self.timedOutPercentage)
        // Eight busy threads leave the helper little CPU: ten captures a second under a sanitizer on two busy CPUs.
        #expect(result.captures > UInt64(Self.seconds))
        #expect(result.failed == 0, "last status \(result.last_status), errno \(result.last_error)")
        #expect(result.reads > 0)
        #expect(result.stuck == 0)
        #expect(result.lost_children == 0)
        #expect(result.lost_exceptions == 0)
        #expect(result.zombies == 0)
        // Fewer descriptors are no leak: an earlier test may still close its own.
        #expect(result.leaked_files <= 0)
    }
}
