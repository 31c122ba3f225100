import Synchronization
import Testing
import TestSupport

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// A stall after which the loop's next turn begins without a wait; something waits for the loop.
@Suite struct StallEndTests {
    private static let threshold: UInt64 = 100_000_000
    private static let begin: UInt64 = 1_000_000_000
    private static let end = begin + 2 * threshold

    private let world = WatchedWorld(at: Self.begin)
    private let context: WatchdogContext
    private let loop = LoopMonitor.stub("busy", threshold: Self.threshold, ThreadSource())
    private var supervisor: LoopSupervisor

    init() {
        context = WatchdogContext(
            capturer: StubCapturer(), now: { [world] in world.time.load(ordering: .relaxed) },
            submit: { [world] record in world.records.withLock { $0.append(record) } }, suppressed: world.suppressed,
            options: .init(), operations: { OperationsReading(began: [.max]) })
        supervisor = LoopSupervisor(loop, context)
        loop.recorder.beginTurn(at: Self.begin)
        supervisor.poll(at: Self.begin + Self.threshold, in: world)
        loop.recorder.beginTurn(at: Self.end)
    }

    private var last: StallRecord? { world.records.withLock { $0.last } }

    @Test mutating func itIsReportedWhenTheLoopWaits() {
        let next = supervisor.poll(at: Self.end + 1_000_000, in: world)
        #expect(world.states == [.ongoing] && next <= Self.end + Self.threshold)
        loop.recorder.beginTurn(at: Self.end + 30_000_000)
        loop.recorder.endTurn(at: Self.end + 35_000_000)
        supervisor.poll(at: next, in: world)
        #expect(world.states == [.ongoing, .ended])
        #expect(last?.duration == 2 * Self.threshold)
        #expect(last?.victims?.laterTurns == 2 && last?.victims?.laterTurnsMilliseconds == 35)
    }

    @Test mutating func itIsReportedSoonIfTheLoopWaits() {
        loop.recorder.endTurn(at: Self.end + 500_000)
        let next = supervisor.poll(at: Self.end + 1_000_000, in: world)
        #expect(world.states == [.ongoing] && next == Self.end + 5_000_000, "the next turn may be about to begin")
        supervisor.poll(at: next, in: world)
        #expect(world.states == [.ongoing, .ended])
        #expect(last?.victims?.operations == 1 && last?.victims?.laterTurns == nil)
    }

    @Test mutating func itIsReportedBeforeTheNextStall() {
        supervisor.poll(at: Self.end + 1_000_000, in: world)
        supervisor.poll(at: Self.end + Self.threshold, in: world)
        #expect(world.states == [.ongoing, .ended, .ongoing])
        let ended = world.records.withLock { $0[1] }
        #expect(ended.victims?.laterTurns == 1 && ended.victims?.laterTurnsMilliseconds == 100)
    }

    @Test mutating func whoAsksDoesNotWait() {
        supervisor.poll(at: Self.end + 1_000_000, in: world)
        supervisor.reportFollowed(at: Self.end + 20_000_000)
        supervisor.reportFollowed(at: Self.end + 20_000_000)
        #expect(world.states == [.ongoing, .ended] && last?.victims?.laterTurnsMilliseconds == 20)
    }

    @Test mutating func theMonitorsEndReportsIt() {
        supervisor.poll(at: Self.end + 1_000_000, in: world)
        supervisor.leave(at: Self.end + 2_000_000)
        #expect(world.states == [.ongoing, .ended])
    }
}

/// The looks at what waits for a loop that stalls.
@Suite struct VictimLooksTests {
    private static let threshold: UInt64 = 320_000_000
    private static let begin: UInt64 = 1_000_000_000

    @Test func `looks go on beside the samples and when there are no more`() {
        let world = WatchedWorld(at: Self.begin)
        let context = world.context(StubCapturer())
        defer { withExtendedLifetime(context) {} }
        let loop = LoopMonitor.stub("main", threshold: Self.threshold, ThreadSource(.mainQueue))
        var supervisor = LoopSupervisor(loop, context)
        loop.recorder.beginTurn(at: Self.begin)
        let first = Self.begin + Self.threshold
        let next = supervisor.poll(at: first, in: world)
        #expect(supervisor.victims.lastLook == first && next == first + 10_000_000)
        supervisor.poll(at: next, in: world)
        #expect(supervisor.victims.lastLook == next)
    }
}

/// A loop that does not report its end, whose thread goes on with something else.
@Suite struct LoopEndTests {
    private static let threshold: UInt64 = 100_000_000
    private static let begin: UInt64 = 1_000_000_000
    private static let runFunction: UInt64 = 0x1000

    private final class Source: LoopSource {
        let kind = LoopKind.probe
        let asked = Mutex<[[UInt64]?]>([])

        func isInTurn(_ addresses: [UInt64]?) -> Bool {
            asked.withLock { $0.append(addresses) }
            return addresses?.contains(LoopEndTests.runFunction) ?? true
        }

        // An id that no thread has (proc(5), pid_max).
        func target(of recorder: TurnRecorder) -> CaptureTarget { .thread(.max) }
    }

    /// Returns the number of stalls of a turn that is over its threshold, and the stacks that the source was asked about.
    private func stalls(stack: [UInt64], isComplete: Bool = true) -> (count: Int, asked: [[UInt64]?]) {
        var captured = CapturedStack.stub(stack)
        captured.isComplete = isComplete
        let world = WatchedWorld(at: Self.begin)
        let source = Source()
        let loop = LoopMonitor.stub("glib", threshold: Self.threshold, source)
        let context = world.context(StubCapturer(.success(captured)))
        var supervisor = LoopSupervisor(loop, context)
        loop.recorder.beginTurn(at: Self.begin)
        for count in 1...3 as ClosedRange<UInt64> {
            supervisor.poll(at: Self.begin + count * Self.threshold, in: world)
        }
        return (world.records.withLock { Set($0.map(\.id)).count }, source.asked.withLock { $0 })
    }

    /// Without a whole stack, the turn is a stall.
    @Test(
        arguments: [
            ([0x5000, runFunction, 0x6000], true, 1), ([0x5000, 0x6000], true, 0), ([0x5000], false, 1),
        ] as [([UInt64], Bool, Int)])
    func `what follows the loop is no stall`(stack: [UInt64], isComplete: Bool, count: Int) {
        let stalls = stalls(stack: stack, isComplete: isComplete)
        #expect(stalls.count == count)
        #expect(stalls.asked == [isComplete ? stack : nil])
    }
}

/// A stall that lasts for four thresholds escalates.
@Suite struct EscalationTests {
    private static let threshold: UInt64 = 100_000_000
    private static let begin: UInt64 = 1_000_000_000
    private static let due = begin + 4 * threshold

    private let world = WatchedWorld(at: Self.begin)
    private let context: WatchdogContext
    private let loop = LoopMonitor.stub("lasting", threshold: Self.threshold, ThreadSource())
    private var supervisor: LoopSupervisor

    init() {
        context = world.context(StubCapturer(), options: WatchdogOptions(escalationMultiple: 4))
        supervisor = LoopSupervisor(loop, context)
        loop.recorder.beginTurn(at: Self.begin)
    }

    private var escalated: [StallRecord] { world.records.withLock { $0.filter(\.isEscalated) } }

    @Test mutating func `a stall escalates when it is due and not a nanosecond before`() {
        var time = Self.begin + Self.threshold
        while time < Self.due { advance(&time, to: supervisor.poll(at: time, in: world)) }
        #expect(time == Self.due, "it asks to be polled then")
        #expect(supervisor.poll(at: Self.due - 1, in: world) == Self.due)
        #expect(escalated.isEmpty)
        _ = supervisor.poll(at: Self.due, in: world)
        #expect(escalated.map(\.duration) == [4 * Self.threshold])
    }

    @Test mutating func `a stall that is over when it is due does not escalate`() {
        _ = supervisor.poll(at: Self.begin + Self.threshold, in: world)
        loop.recorder.endTurn(at: Self.due - 1)
        _ = supervisor.poll(at: Self.due, in: world)
        #expect(world.states == [.ongoing, .ended] && escalated.isEmpty)
    }

    @Test mutating func `a watchdog that was stopped gives the loop another threshold`() {
        _ = supervisor.poll(at: Self.begin + Self.threshold, in: world)
        let late = Self.due + Self.threshold + 1
        #expect(supervisor.poll(at: late, in: world) <= late + Self.threshold)
        #expect(escalated.isEmpty)
        _ = supervisor.poll(at: late + Self.threshold, in: world)
        #expect(!escalated.isEmpty)
    }
}
