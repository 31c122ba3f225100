import CUnwindTestSupport
import Testing

/// Captures by stop while something else happens to the helper, the thread or the process.
///
/// Whatever it is, the thread runs on.
@Suite(.serialized) struct DisturbanceTests {
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

    @Test func everySignalArrives() {
        let result = cunwind_test_signal_storm(Self.milliseconds)
        print("signal storm: \(result)")
        #expect(result.disturbances > 0)
        #expect(result.lost == 0)
        #expect(result.failed == 0)
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
