import CUnwindTestSupport
import Testing

@testable import StallWatch

/// A thread that answers neither ptrace nor a signal: the parent of a vfork(2), whose child sleeps for 400 ms.
@Suite(.serialized) struct UninterruptibleSleepTests {
    @Test func theStackIsReadWhole() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let poser = try #require(cunwind_test_poser_start(CUNWIND_TEST_IN_VFORK, 3))
        let began = monotonicNow()
        let stack = try capture.capture(thread: cunwind_test_poser_tid(poser))
        let took = monotonicNow() - began
        #expect(cunwind_test_poser_stop(poser) > 0, "vfork did not return")
        #expect(stack.method == .read)
        #expect(stack.threadState == .uninterruptible)
        #expect(stack.isComplete, "\(stack.incompleteReason ?? "?")")
        #expect(stack.frames.filter { cunwind_test_poser_contains($0.lookupAddress) }.count >= 4)
        #expect(stack.heldNanoseconds == 0)
        // The wait itself goes on for several times as long.
        #expect(took < 100_000_000, "\(took) ns")
    }
}
