import CUnwindTestSupport
import Testing

/// Captures by stop while something else happens to the helper, the thread or the process.
///
/// Whatever it is, the thread runs on.
@Suite(.serialized) struct HelperFaultTests {
    static let milliseconds: UInt32 = 3000

    @Test func aKilledHelperLeavesNothingStopped() {
        let result = cunwind_test_kill_helpers(Self.milliseconds)
        print("killed helpers: \(result)")
        #expect(result.disturbances > 0)
        #expect(result.failed > 0, "no helper was killed before it had answered")
        #expect(result.captures > 0)
        #expect(result.rounds > 0, "the thread was left stopped")
        #expect(result.zombies == 0)
    }

    /// As good as a helper that is given no CPU.
    @Test func aHelperThatDoesNotGetOnIsGivenUp() {
        let result = cunwind_test_stop_helpers(Self.milliseconds)
        print("stopped helpers: \(result)")
        #expect(result.timed_out > 0)
        #expect(result.failed == 0, "last status \(result.last_status), errno \(result.last_error)")
        // The bound on a stop, and the time that the helper has beyond it to be gone.
        #expect(result.slowest_capture_nanoseconds < 1_000_000_000)
        #expect(result.rounds > 0, "the thread was left stopped")
        #expect(result.zombies == 0)
    }

    /// It stops after nobody waits for its stack any more, in a call that never goes on after a stop.
    @Test func aThreadThatGetsNoCPUIsLetGoOn() throws {
        let result = cunwind_test_stop_timeout()
        try #require(result.wait_error != -1, "needs CAP_SYS_NICE and two CPUs")
        #expect(result.capture == CUNWIND_TIMED_OUT)
        #expect(result.wait_error == 0)
        #expect(result.zombies == 0)
    }

    @Test func everySignalArrives() {
        let result = cunwind_test_signal_storm(Self.milliseconds)
        print("signal storm: \(result)")
        #expect(result.disturbances > 0)
        #expect(result.lost == 0)
        #expect(result.failed == 0, "last status \(result.last_status), errno \(result.last_error)")
        // A host that takes the CPUs away for longer than the bound on a stop: once in tens of thousands was seen.
        #expect(result.timed_out * 1000 <= result.captures)
        #expect(result.captures > 0)
        #expect(result.rounds > 0, "the thread was left stopped")
        #expect(result.zombies == 0)
    }

    @Test func aProcessUnderJobControlGoesOn() {
        let result = cunwind_test_job_control(Self.milliseconds)
        print("job control: \(result)")
        #expect(result.disturbances > 0)
        #expect(result.captures > 0)
        #expect(result.rounds > 0, "the thread was left stopped")
        #expect(result.zombies == 0)
    }
}
