import CUnwind
import CUnwindTestSupport
import Foundation
import Testing

/// Captures where the kernel refuses ptrace, or the thread has ended.
@Suite(.serialized) struct RefusalTests {
    /// Service managers' filters kill by default, and the helper that they would kill shares the app's memory.
    @Test(arguments: [false, true])
    func withoutPtraceTheSignalTakesOver(kills: Bool) throws {
        var result = cunwind_test_refusal_result()
        try #require(cunwind_test_refusal(kills, &result))
        #expect(result.probe_status == Int32(CUNWIND_REFUSED.rawValue))
        #expect(result.probe_error == EPERM)
        #expect(result.stop_status == Int32(CUNWIND_REFUSED.rawValue))
        #expect(result.stop_error == EPERM)
        #expect(result.signal_status == Int32(CUNWIND_OK.rawValue))
        #expect(result.signal_is_complete)
        #expect(result.read_status == Int32(CUNWIND_OK.rawValue))
        #expect(result.read_is_complete)
    }

    /// As strace or a debugger does for a while.
    @Test func `a thread with a tracer is busy until the tracer is gone`() {
        var error: Int32 = 0, second: Int32 = -1
        #expect(cunwind_test_stop_of_traced(&error, &second) == Int32(CUNWIND_REFUSED.rawValue))
        #expect(error == EBUSY)
        #expect(second == Int32(CUNWIND_OK.rawValue))
    }

    @Test(.enabled(if: cunwind_test_may_choose_ids(), "needs CAP_CHECKPOINT_RESTORE"))
    func `a process with a reused thread id is not stopped`() {
        #expect(cunwind_test_stop_reused_id() == Int32(CUNWIND_NO_SUCH_THREAD.rawValue))
    }

    @Test func `a helper ends if its parent is gone`() {
        var status: Int32 = -1
        let took = cunwind_test_unnamed_helper(&status)
        #expect(status == Int32(CUNWIND_TIMED_OUT.rawValue))
        #expect(took >= UInt64(CUNWIND_STOP_TIMEOUT_NANOSECONDS))
        #expect(took < 10 * UInt64(CUNWIND_STOP_TIMEOUT_NANOSECONDS))
    }

    /// The app does not wait for this child, so without the engine it would stay a zombie.
    @Test(arguments: [false, true])
    func `a helper that ends late is reaped`(looksAgain: Bool) {
        #expect(cunwind_test_late_helper(looksAgain) == 0)
    }

    @Test func `a helper left to its thread is killed in time`() {
        #expect(cunwind_test_overdue_helper() == 0)
    }
}
