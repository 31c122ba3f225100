import CUnwind
import CUnwindTestSupport
import Foundation
import Glibc
import Testing

/// Captures by stop while the helper, the thread or the process is killed, stopped or signaled.
///
/// The thread continues in every case.
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

    /// A stopped helper behaves like a helper that gets no CPU.
    @Test func aHungHelperIsGivenUpInBoundedTime() {
        let result = cunwind_test_stop_helpers(Self.milliseconds)
        print("stopped helpers: \(result)")
        #expect(result.timed_out > 0)
        #expect(result.failed == 0, "last status \(result.last_status), errno \(result.last_error)")
        // The time limit of a stop, plus the helper's grace period.
        #expect(result.slowest_capture_nanoseconds < 1_000_000_000)
        #expect(result.rounds > 0, "the thread was left stopped")
        #expect(result.zombies == 0)
    }

    /// The thread stops after the capture has timed out, in a call that a stop interrupts.
    @Test(.enabled(if: mayRunRealTimeThreads, "needs two CPUs, and CAP_SYS_NICE or a limit for real-time priorities"))
    func aLateStopDoesNotInterruptTheCall() throws {
        let result = cunwind_test_stop_timeout()
        try #require(result.wait_error != -1, "the thread could not be kept off its CPU")
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
        // A host can take the CPUs away for longer than the limit of a stop (seen once in tens of thousands).
        #expect(result.timed_out * 1000 <= result.captures)
        #expect(result.captures > 0)
        #expect(result.rounds > 0, "the thread was left stopped")
        #expect(result.zombies == 0)
    }

    @Test func `captures survive job control`() {
        let result = cunwind_test_job_control(Self.milliseconds)
        print("job control: \(result)")
        #expect(result.disturbances > 0)
        #expect(result.captures > 0)
        #expect(result.rounds > 0, "the thread was left stopped")
        #expect(result.zombies == 0)
    }
}

/// Whether the process may start a thread of real-time priority and has a second CPU for the other threads.
private let mayRunRealTimeThreads: Bool = {
    var parameters = sched_param()
    parameters.sched_priority = 1
    guard ProcessInfo.processInfo.activeProcessorCount > 1,
        pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters) == 0
    else { return false }
    parameters.sched_priority = 0
    return pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters) == 0
}()

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
