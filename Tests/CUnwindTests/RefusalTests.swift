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

    /// The values of seccomp(2): KILL_PROCESS, KILL_THREAD, TRAP; and ERRNO with EPERM.
    @Test(arguments: [0x8000_0000, 0, 0x3_0000, 0x5_0001] as [UInt32], [true, false])
    func `a filter that kills is found out`(action: UInt32, sharesMemory: Bool) {
        var trials = cunwind_test_trials()
        #expect(cunwind_test_try_calls(action, sharesMemory, &trials) == 0)
        #expect(trials.is_tried)
        // The calls of the enumeration CUNWIND_CALL_READ_MEMORY, 0, and CUNWIND_CALL_QUEUE_SIGNAL, 4.
        #expect(trials.deadly == (action == 0x5_0001 ? 0 : 1 << 0 | 1 << 4))
        #expect(trials.other_calls == 0)
        // 64 MB are 16,384 pages: the app pays for a copy of them with a fault each.
        #expect(sharesMemory ? trials.faults < 100 : trials.faults > 16_000, "\(trials.faults) page faults")
        #expect(trials.is_known)
        #expect(trials.is_known_later, "a filter more is another answer")
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
