import CUnwindTestSupport
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// A capture has no effect on blocking calls: no EINTR, no early return, and a complete stack every time.
///
/// The same calls under a plain signal prove that the test can fail.
@Suite(.serialized) struct InterruptedCallsTests {
    static let captures = 200
    /// The duration of each blocking call.
    ///
    /// sleep(3) always takes at least a second.
    static let milliseconds: UInt32 = 12

    @Test(arguments: 0..<cunwind_test_call_count())
    func aCaptureInterruptsNoWait(index: Int) throws {
        let stolen = CPUSteal()
        let call = cunwind_test_call_at(index)
        let name = String(cString: call.name)
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let blocker = try #require(cunwind_test_blocker_start(index, Self.milliseconds))
        let thread = cunwind_test_blocker_tid(blocker)
        var generator = SystemRandomNumberGenerator()
        var incomplete: [String] = []
        var withoutFunction = 0
        var taken = 0
        var methods: [CapturedStack.Method: Int] = [:]
        for _ in 0..<Self.captures {
            pause(microseconds: .random(in: 0..<6000, using: &generator))
            guard let stack = try? capture.capture(thread: thread) else { continue }
            taken += 1
            methods[stack.method, default: 0] += 1
            if !stack.isComplete { incomplete.append(stack.incompleteReason ?? "?") }
            let isInCall = stack.frames.contains { cunwind_test_call_contains(index, $0.lookupAddress) }
            // Between two calls the thread runs outside the function, but a blocked thread is always in it.
            if stack.threadState != .running, !isInCall { withoutFunction += 1 }
        }
        let result = cunwind_test_blocker_stop(blocker)
        print("\(name): \(result.iterations) calls, \(taken) captures \(methods)")
        #expect(result.interrupted == 0, "\(name): \(result.interrupted) of \(result.iterations) calls gave EINTR")
        // The kernel's timeouts count ticks. After CPU steal, several late ticks arrive at once.
        stolen.excuses {
            #expect(result.early == 0, "\(name): \(result.early) of \(result.iterations) calls returned early")
        }
        #expect(result.failed == 0, "\(name): error \(result.error)")
        // A thread that moves on during every attempt to read it has no stack; that is rare.
        #expect(taken >= Self.captures * 9 / 10)
        #expect(incomplete.isEmpty, "\(name): \(incomplete.count) incomplete stacks: \(Set(incomplete))")
        #expect(withoutFunction == 0, "\(name): \(withoutFunction) stacks without the calling function")
    }

    @Test func aPlainSignalInterruptsCalls() throws {
        var interrupted: [String] = []
        for index in 0..<cunwind_test_call_count() where cunwind_test_call_at(index).is_timed {
            let blocker = try #require(cunwind_test_blocker_start(index, Self.milliseconds))
            for _ in 0..<10 {
                pause(microseconds: 3000)
                #expect(cunwind_test_send_plain_signal(cunwind_test_blocker_tid(blocker)))
            }
            let result = cunwind_test_blocker_stop(blocker)
            if result.interrupted > 0 || result.early > 0 {
                interrupted.append(String(cString: cunwind_test_call_at(index).name))
            }
        }
        print("interrupted by a signal: \(interrupted.joined(separator: ", "))")
        #expect(interrupted.count >= 8)
    }
}

private func pause(microseconds: UInt32) {
    usleep(microseconds)
}
