import CUnwind
import CUnwindTestSupport
import Foundation
import Testing

/// Captures threads as fast as possible while they do everything that takes locks.
@Suite(.serialized) struct HuntTests {
    /// A minute's hunt takes `STALLWATCH_HUNT_SECONDS=60`.
    static let seconds = ProcessInfo.processInfo.environment["STALLWATCH_HUNT_SECONDS"].flatMap(UInt32.init) ?? 10

    @Test func nothingIsLostStuckOrLeftBehind() {
        let result = cunwind_test_hunt(Self.seconds * 1000)
        print("hunt: \(result)")
        #expect(result.captures > UInt64(Self.seconds) * 100)
        #expect(result.failed == 0, "last status \(result.last_status), errno \(result.last_error)")
        #expect(result.stuck == 0)
        #expect(result.lost_children == 0)
        #expect(result.zombies == 0)
        // Fewer are no leak: something before this test may still be closing its own.
        #expect(result.leaked_files <= 0)
    }

    @Test func withoutPtraceTheSignalTakesOver() throws {
        var result = cunwind_test_refusal_result()
        try #require(cunwind_test_refusal(&result))
        #expect(result.probe_status == Int32(CUNWIND_REFUSED.rawValue))
        #expect(result.probe_error == EPERM)
        #expect(result.stop_status == Int32(CUNWIND_REFUSED.rawValue))
        #expect(result.signal_status == Int32(CUNWIND_OK.rawValue))
        #expect(result.signal_is_complete)
        #expect(result.read_status == Int32(CUNWIND_OK.rawValue))
        #expect(result.read_is_complete)
    }
}
