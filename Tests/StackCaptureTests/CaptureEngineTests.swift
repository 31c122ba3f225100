import TestSupport
import Synchronization
import Testing

@testable import StackCapture

@Suite struct TimedCapturerTests {
    private final class Clock: Sendable {
        let time = Atomic<UInt64>(1_000)
    }

    /// A capturer that takes a given time and then succeeds or fails.
    private final class Slow: StackCapturing {
        let clock: Clock
        var takes: UInt64 = 0
        var fails = false
        let methods = [CapturedStack.Method.ptrace]
        let unwinder = Unwinder(name: "libunwind 1.6.2")

        init(_ clock: Clock) { self.clock = clock }

        func capture(thread: Int32, mayStop: Bool) throws(CaptureError) -> CapturedStack {
            clock.time.add(takes, ordering: .relaxed)
            if fails { throw CaptureError(description: "the thread did not answer in time") }
            return .stub([0x1000])
        }

        func images() -> ImageList { ImageList() }

        func leave(processor: Int32) {}
    }

    private let clock = Clock()
    private let slow: Slow
    private let capturer: TimedCapturer

    init() {
        let clock = clock
        slow = Slow(clock)
        capturer = TimedCapturer(slow) { clock.time.load(ordering: .relaxed) }
    }

    @Test func timesOfFailedAndSuccessfulCapturesAddUp() throws {
        slow.takes = 120_000_000
        #expect(try capturer.capture(thread: 1).frames.count == 1)
        slow.fails = true
        #expect(throws: CaptureError.self) { try capturer.capture(thread: 1) }
        #expect(capturer.timeTaken == 240_000_000)
        #expect(capturer.methods == [.ptrace])
        #expect(capturer.unwinder.name == "libunwind 1.6.2")
    }

    @Test func timeOverTheLongestCaptureIsNotCounted() throws {
        slow.takes = 3_000_000_000
        _ = try capturer.capture(thread: 1)
        #expect(capturer.timeTaken == TimedCapturer.longestCapture)
    }
}
