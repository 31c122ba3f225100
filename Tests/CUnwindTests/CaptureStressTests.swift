import CUnwind
import CUnwindTestSupport
import Foundation
import Testing

/// Captures threads as fast as possible while they do everything that takes locks.
@Suite(.serialized) struct CaptureStressTests {
    /// A shorter hunt, while one works on it, takes `STALLWATCH_STRESS_SECONDS=5`.
    static let seconds = ProcessInfo.processInfo.environment["STALLWATCH_STRESS_SECONDS"].flatMap(UInt32.init) ?? 60

    @Test func nothingIsLostStuckOrLeftBehind() {
        let result = cunwind_test_hunt(Self.seconds * 1000)
        print("hunt: \(result)")
        // Eight busy threads leave the helper little; on two busy processors under a sanitizer it is ten a second.
        #expect(result.captures > UInt64(Self.seconds))
        #expect(result.failed == 0, "last status \(result.last_status), errno \(result.last_error)")
        #expect(result.reads > 0)
        #expect(result.stuck == 0)
        #expect(result.lost_children == 0)
        #expect(result.lost_exceptions == 0)
        #expect(result.zombies == 0)
        // Fewer are no leak: something before this test may still be closing its own.
        #expect(result.leaked_files <= 0)
    }
}
