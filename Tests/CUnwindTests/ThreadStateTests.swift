import CUnwind
import CUnwindTestSupport
import Foundation
import Testing

/// The stack of a thread in any state is captured completely, and the thread continues.
@Suite(.serialized) struct ThreadStateTests {
    /// A row of the table that the tests on aarch64 use, too.
    struct Case: CustomTestStringConvertible, Sendable {
        var index: Int

        var state: cunwind_test_state { cunwind_test_state_at(index) }

        var ways: [CaptureEngine.Way] {
            [(state.by_read, CaptureEngine.Way.read), (state.by_stop, .stop), (state.by_signal, .signal)]
                .filter(\.0).map(\.1)
        }

        var testDescription: String { "\(String(cString: state.name)), depth \(state.depth)" }
    }

    @Test(arguments: (0..<cunwind_test_state_count()).map(Case.init))
    func `the stack is whole and the thread runs on`(row: Case) throws {
        var state = row.state
        let thread_state = try #require(cunwind_test_thread_start(state.posture, state.depth))
        let engine = try CaptureEngine(thread: cunwind_test_thread_tid(thread_state))
        for way in row.ways {
            // The polling thread may be between two waits.
            var status = engine.capture(by: way)
            for _ in 0..<10 where status == CUNWIND_NOT_BLOCKED || status == CUNWIND_MOVED {
                usleep(1000)
                status = engine.capture(by: way)
            }
            #expect(status == CUNWIND_OK, "\(way), errno \(engine.info.error)")
            #expect(engine.isComplete, "\(way): end \(engine.stack.end)")
            let inPosture = engine.addresses.filter(cunwind_test_thread_contains)
            let expected = Int(cunwind_test_state_frames(&state))
            #expect(inPosture.count >= expected, "\(way): frames of the function that took the posture")
            #expect(engine.stack.omitted_at == 0)
        }
        #expect(cunwind_test_thread_stop(thread_state) > 0, "the thread did not go on")
    }

    /// A stack of 2,000 frames of 1 KiB keeps both ends, and the cut is marked.
    @Test(arguments: [CaptureEngine.Way.stop, .signal])
    func `a stack beyond the limit keeps both ends`(way: CaptureEngine.Way) throws {
        let thread_state = try #require(cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 2000))
        let engine = try CaptureEngine(thread: cunwind_test_thread_tid(thread_state))
        #expect(engine.capture(by: way) == CUNWIND_OK)
        #expect(engine.isComplete)
        let stack = engine.stack
        #expect(stack.frame_count <= UInt32(CUNWIND_MAX_FRAMES))
        #expect(stack.omitted_at > 0)
        #expect(engine.info.stack_bytes <= UInt64(CUNWIND_MAX_STACK_BYTES))
        #expect(cunwind_test_thread_stop(thread_state) > 0, "the thread did not go on")
    }

    /// The signal that captures use may be one that the app handles.
    @Test func aSignalThatTheAppUsesGoesToItsHandler() {
        let result = cunwind_test_shared_signal()
        #expect(result.captures == 200)
        #expect(result.sent == 200)
        #expect(result.arrived == result.sent)
        #expect(result.is_put_back)
    }

    @Test func `a thread that blocks the signal is sent none`() throws {
        let thread_state = try #require(cunwind_test_thread_start(CUNWIND_TEST_BLOCKING_SIGNALS, 3))
        let engine = try CaptureEngine(thread: cunwind_test_thread_tid(thread_state))
        #expect(try engine.status().blocked_signals & 1 << UInt64(SIGPROF - 1) != 0)
        #expect(engine.capture(by: .signal) == CUNWIND_SIGNAL_BLOCKED)
        #expect(engine.stack.frame_count == 0)
        #expect(engine.info.capture_nanoseconds < UInt64(CUNWIND_SIGNAL_TIMEOUT_NANOSECONDS))
        #expect(cunwind_test_thread_stop(thread_state) > 0)
    }

    /// The kernel gives the lowest free number, so one at four fifths of the limit means that as many are in use.
    @Test func `near the limit of descriptors a thread is opened without taking any`() throws {
        let engine = try #require(cunwind_test_engine(SIGPROF))
        defer { cunwind_engine_destroy(engine) }
        let free = try lowestFreeDescriptor()
        var before = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before) == 0)
        var near = rlimit(rlim_cur: UInt(free) * 5 / 4, rlim_max: before.rlim_max)
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &near) == 0)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before) }
        errno = 0
        #expect(cunwind_thread_open(getpid(), UInt32(CUNWIND_ALL_THREAD_FILES.rawValue), nil) == nil)
        #expect(errno == EMFILE)
        #expect(try lowestFreeDescriptor() == free)
    }

    private func lowestFreeDescriptor() throws -> Int32 {
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        close(descriptor)
        return descriptor
    }

    /// The parent of a vfork(2) waits in state D until its child, which sleeps for 400 ms, is done.
    @Test func `a thread in uninterruptible sleep is read and cannot be stopped`() throws {
        let thread_state = try #require(cunwind_test_thread_start(CUNWIND_TEST_IN_VFORK, 3))
        let engine = try CaptureEngine(thread: cunwind_test_thread_tid(thread_state))
        let status = try engine.status()
        #expect(status.is_blocked)
        #expect(status.state == CChar(UInt8(ascii: "D")))

        #expect(engine.capture(by: .read) == CUNWIND_OK)
        #expect(engine.isComplete, "end \(engine.stack.end)")
        #expect(engine.addresses.filter(cunwind_test_thread_contains).count >= 4)
        #expect(engine.info.held_nanoseconds == 0)
        #expect(engine.info.capture_nanoseconds < 50_000_000)

        // The stop releases the thread at its time limit; the thread's wait continues.
        #expect(engine.capture(by: .stop) == CUNWIND_TIMED_OUT)
        #expect(engine.info.capture_nanoseconds < 4 * UInt64(CUNWIND_STOP_TIMEOUT_NANOSECONDS))
        #expect(try engine.status().state == CChar(UInt8(ascii: "D")), "the stop ended the wait")
        #expect(cunwind_test_thread_stop(thread_state) > 0, "vfork did not return")
    }
}
