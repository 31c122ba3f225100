import Glibc
import Synchronization
import Testing
import TestSupport

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// Turns over the threshold that end before the watchdog looks.
@Suite struct MissedTurnTests {
    private static let threshold: UInt64 = 100_000_000
    private static let begin: UInt64 = 1_000_000_000

    private final class Source: LoopSource {
        let kind = LoopKind.probe
        let isWaiting = Atomic<Bool>(false)

        func isWaitingUnobserved() -> Bool { isWaiting.load(ordering: .relaxed) }
    }

    private let world = WatchedWorld(at: Self.begin)
    private let source = Source()
    private let context: WatchdogContext
    private let loop: LoopMonitor
    private var supervisor: LoopSupervisor

    init() {
        context = world.context(StubCapturer())
        loop = .stub("victim", threshold: Self.threshold, source)
        supervisor = LoopSupervisor(loop, context)
    }

    private var records: [StallRecord] { world.records.withLock { $0 } }

    private func turn(_ began: UInt64, _ length: UInt64) {
        loop.recorder.beginTurn(at: Self.begin + began)
        loop.recorder.endTurn(at: Self.begin + began + length)
    }

    @Test mutating func `it is reported after its end, by its own times`() throws {
        loop.recorder.beginTurn(at: Self.begin)
        supervisor.poll(at: Self.begin + 1, in: world)
        loop.recorder.endTurn(at: Self.begin + 3 * Self.threshold)
        supervisor.poll(at: Self.begin + 5 * Self.threshold, in: world)
        let record = try #require(records.first)
        #expect(records.count == 1 && record.state == .ended && record.samples.isEmpty)
        #expect(record.duration == 3 * Self.threshold && record.missed == 1)
        #expect(record.watchdogLate == 4 * Self.threshold)
        #expect(record.missedReason == "the turn had ended when the watchdog looked, 400.0 ms after the threshold")
        supervisor.poll(at: Self.begin + 6 * Self.threshold, in: world)
        #expect(records.count == 1)
    }

    @Test func `a thread that goes before the watchdog is named`() {
        let reason = MissedTurns.reason(late: 5_000_000, omitted: 2, policy: "SCHED_FIFO")
        #expect(
            reason.hasSuffix(
                "threshold; its thread has the policy SCHED_FIFO, so the watchdog may have had no CPU"
                    + "; 2 turns before it are counted with it"))
        #expect(CaptureTarget.thread(getpid()).realTimePolicy == nil)
    }

    @Test(arguments: [0, 5] as [UInt64])
    mutating func `each of several is reported, and those without room are counted`(others: UInt64) {
        let kept = UInt64(TurnRecorder.maximumUnseen)
        for number in 0..<(kept + others) { turn(number * 2 * Self.threshold, Self.threshold) }
        supervisor.poll(at: Self.begin + 100 * Self.threshold, in: world)
        #expect(records.count == Int(kept))
        #expect(records.reduce(0) { $0 + $1.missed } == Int(kept + others))
        #expect(records.first?.missedReason?.contains("are counted with it") == (others > 0))
    }

    @Test mutating func `a stall that was seen is reported once`() {
        loop.recorder.beginTurn(at: Self.begin)
        supervisor.poll(at: Self.begin + Self.threshold, in: world)
        loop.recorder.endTurn(at: Self.begin + 2 * Self.threshold)
        supervisor.poll(at: Self.begin + 3 * Self.threshold, in: world)
        #expect(records.map(\.state) == [.ongoing, .ended] && records.allSatisfy { $0.missed == 0 })
    }

    @Test mutating func `a turn that ends while the watchdog takes its first sample is reported once`() {
        let capturer = StubCapturer { [loop] _ in
            loop.recorder.endTurn(at: Self.begin + 2 * Self.threshold)
            return .success(.stub([0x1000]))
        }
        let context = world.context(capturer)
        defer { withExtendedLifetime(context) {} }
        var supervisor = LoopSupervisor(loop, context)
        source.isWaiting.store(false, ordering: .relaxed)
        loop.recorder.setThread(.max)
        loop.recorder.beginTurn(at: Self.begin)
        for polls in 1...3 as ClosedRange<UInt64> {
            supervisor.poll(at: Self.begin + 2 * polls * Self.threshold, in: world)
        }
        #expect(Set(records.map(\.id)).count == 1)
    }

    @Test mutating func `one that waited for its own events, as a poll has seen, is no stall`() {
        source.isWaiting.store(true, ordering: .relaxed)
        loop.recorder.beginTurn(at: Self.begin)
        supervisor.poll(at: Self.begin + 1, in: world)
        loop.recorder.endTurn(at: Self.begin + 9 * Self.threshold)
        supervisor.poll(at: Self.begin + 10 * Self.threshold, in: world)
        #expect(records.isEmpty)
    }

    /// The process is stopped in a stall, and the watchdog is late after that, or after one more look.
    @Test(arguments: [false, true])
    mutating func `one that is measured anew and goes on is reported by what counts`(isSeen: Bool) {
        func poll(at time: UInt64) {
            world.time.store(time, ordering: .relaxed)
            _ = supervisor.poll(
                at: time, countingFrom: Self.begin + 50 * Self.threshold, suppressed: .processStopped)
        }
        let resumed = Self.begin + 50 * Self.threshold
        loop.recorder.setThread(.max)
        loop.recorder.beginTurn(at: Self.begin)
        supervisor.poll(at: Self.begin + Self.threshold, in: world)
        poll(at: resumed)
        if isSeen { poll(at: resumed + 1) }
        loop.recorder.endTurn(at: resumed + 3 * Self.threshold)
        poll(at: resumed + 5 * Self.threshold)
        #expect(records.map(\.state) == [.ongoing, .abandoned, .ended])
        #expect(records.last?.duration == 3 * Self.threshold && records.last?.missed == 1)
    }

    /// A stopped process, a pause, and a host that took the CPUs.
    @Test(arguments: [(3, 0), (0, 3)] as [(UInt64, UInt64)])
    mutating func `time that does not count is no stall`(counting: UInt64, excused: UInt64) {
        turn(0, 2 * Self.threshold)
        let time = Self.begin + 4 * Self.threshold
        world.time.store(time, ordering: .relaxed)
        _ = supervisor.poll(
            at: time, countingFrom: counting == 0 ? 0 : Self.begin + counting * Self.threshold,
            excusedUntil: excused == 0 ? 0 : Self.begin + excused * Self.threshold, suppressed: .paused)
        #expect(records.isEmpty)
    }

    @Test mutating func `turns before the watch, and short ones, do not count`() {
        turn(0, 2 * Self.threshold)
        loop.begin(at: Self.begin + 2 * Self.threshold)
        turn(3 * Self.threshold, Self.threshold - 1)
        supervisor.poll(at: Self.begin + 5 * Self.threshold, in: world)
        #expect(records.isEmpty)
    }

    @Test mutating func `the end of the watch reports it, too`() {
        turn(0, 2 * Self.threshold)
        supervisor.leave(at: Self.begin + 3 * Self.threshold)
        #expect(records.map(\.duration) == [2 * Self.threshold])
    }
}
