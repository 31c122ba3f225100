import Synchronization
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// A loop that does not report its end, whose thread goes on with something else.
@Suite struct LoopEndTests {
    private static let threshold: UInt64 = 100_000_000
    private static let begin: UInt64 = 1_000_000_000
    private static let runFunction: UInt64 = 0x1000

    private final class Source: LoopSource {
        let kind = LoopKind.probe
        /// The whole stacks that the watchdog has asked about.
        let asked = Mutex<[[UInt64]?]>([])

        func isInTurn(_ addresses: [UInt64]?) -> Bool {
            asked.withLock { $0.append(addresses) }
            return addresses?.contains(LoopEndTests.runFunction) ?? true
        }

        // An id that no thread has (proc(5), pid_max).
        func target(of recorder: TurnRecorder) -> CaptureTarget { .thread(.max) }
    }

    private final class Capturer: StackCapturing {
        let methods = [CapturedStack.Method.read]
        private let stack: CapturedStack

        init(_ stack: CapturedStack) { self.stack = stack }

        func capture(thread: Int32, mayStop: Bool) throws(CaptureError) -> CapturedStack { stack }

        func images() -> ImageList { ImageList() }

        func leave(processor: Int32) {}
    }

    /// Returns the number of stalls of a turn that is over its threshold, and the stacks that the source was asked about.
    private func stalls(stack: [UInt64], isComplete: Bool = true) -> (count: Int, asked: [[UInt64]?]) {
        var captured = CapturedStack.stub(stack)
        captured.isComplete = isComplete
        let world = WatchedWorld(at: Self.begin)
        let source = Source()
        let loop = LoopMonitor(
            label: "glib", threshold: Self.threshold, recorder: TurnRecorder(alarm: WatchdogAlarm()), source: source
        )
        let services = world.services(Capturer(captured))
        var watch = LoopSupervisor(loop, services)
        loop.recorder.beginTurn(at: Self.begin)
        for count in 1...3 as ClosedRange<UInt64> { watch.poll(at: Self.begin + count * Self.threshold, in: world) }
        return (world.records.withLock { Set($0.map(\.id)).count }, source.asked.withLock { $0 })
    }

    @Test func `a turn with the loop on its stack is a stall`() {
        let stack = [0x5000, Self.runFunction, 0x6000]
        let stalls = stalls(stack: stack)
        #expect(stalls.count == 1)
        #expect(stalls.asked == [stack])
    }

    @Test func `what follows the loop is no stall`() {
        let stalls = stalls(stack: [0x5000, 0x6000])
        #expect(stalls.count == 0)
        #expect(stalls.asked.count == 1)
    }

    @Test func `without a whole stack the turn is a stall`() {
        let stalls = stalls(stack: [0x5000], isComplete: false)
        #expect(stalls.count == 1)
        #expect(stalls.asked == [nil])
    }
}
