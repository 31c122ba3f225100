import TestSupport
import Synchronization
import Testing

@testable import StallReports
@testable import StackCapture
@testable import StallWatch

/// Turns that run their loop in a mode without observers, where the loop may wait for its own events.
@Suite struct UnobservedRunTests {
    private static let threshold: UInt64 = 100_000_000
    private static let begin: UInt64 = 1_000_000_000

    /// A source whose thread is in such a run, and whose number of waits is unknown.
    private final class Source: LoopSource {
        let kind = LoopKind.runLoop
        let isInRun = Atomic<Bool>(true)
        let isWaiting = Atomic<Bool>(false)

        // An id that no thread has (proc(5), pid_max).
        func target(of recorder: TurnRecorder) -> CaptureTarget { .thread(.max) }
        /// Every stack of the capturer has two such frames: the outermost run and one that no observer saw.
        var runFunction: Range<UInt64> { isInRun.load(ordering: .relaxed) ? 0x1000..<0x1001 : 0..<0 }
        func isWaitingUnobserved() -> Bool { isWaiting.load(ordering: .relaxed) }
    }

    private let world = WatchedWorld(at: Self.begin)
    private let source = Source()
    private let capturer = StubCapturer(.success(.stub([0x1000, 0x1000])))
    private let context: WatchdogContext
    private let loop: LoopMonitor
    private var supervisor: LoopSupervisor

    init() {
        context = world.context(capturer)
        loop = .stub("nested", threshold: Self.threshold, source)
        supervisor = LoopSupervisor(loop, context)
        loop.recorder.beginTurn(at: Self.begin)
    }

    private mutating func poll(after thresholds: UInt64) {
        supervisor.poll(at: Self.begin + thresholds * Self.threshold, in: world)
    }

    private func duringCaptures(_ body: @escaping () -> Void) {
        capturer.answer = { _ in
            body()
            return .success(.stub([0x1000, 0x1000]))
        }
    }

    @Test mutating func aTurnThatMayWaitIsNoStall() {
        for count in 1...4 as ClosedRange<UInt64> { poll(after: count) }
        #expect(world.records.withLock { $0.isEmpty })
    }

    @Test mutating func `a turn that may have waited and ends during a poll is no stall`() {
        poll(after: 1)
        let recorder = loop.recorder
        duringCaptures { [source] in
            recorder.endTurn(at: Self.begin + 2 * Self.threshold + 1)
            source.isInRun.store(false, ordering: .relaxed)
        }
        poll(after: 2)
        #expect(world.records.withLock { $0.isEmpty })
        poll(after: 3)
        #expect(world.records.withLock { $0.isEmpty })
    }

    /// The end of the run is unknown: it may have been just before the poll.
    @Test(arguments: [false, true])
    mutating func aTurnIsMeasuredAnewAfterAnUnobservedRun(waits: Bool) throws {
        source.isWaiting.store(waits, ordering: .relaxed)
        poll(after: 1)
        source.isWaiting.store(false, ordering: .relaxed)
        source.isInRun.store(false, ordering: .relaxed)
        poll(after: 2)
        #expect(world.records.withLock { $0.isEmpty })
        poll(after: 3)
        let record = try #require(world.records.withLock { $0.first })
        #expect(record.duration == Self.threshold)
        #expect(record.startUncertainty == 2 * Self.threshold)
    }

    @Test mutating func `a turn that waited and ends during the next poll is no stall`() {
        source.isWaiting.store(true, ordering: .relaxed)
        poll(after: 1)
        source.isWaiting.store(false, ordering: .relaxed)
        source.isInRun.store(false, ordering: .relaxed)
        let recorder = loop.recorder
        duringCaptures { recorder.endTurn(at: Self.begin + 2 * Self.threshold + 1) }
        poll(after: 2)
        #expect(world.records.withLock { $0.isEmpty })
    }

    @Test mutating func `a turn without an unobserved run is a stall that is over`() {
        let recorder = loop.recorder
        duringCaptures { recorder.endTurn(at: Self.begin + Self.threshold + 1) }
        poll(after: 1)
        #expect(world.records.withLock { $0.count } == 1)
    }

    // MARK: While many loops are late

    private var records: [StallRecord] { world.records.withLock { $0 } }

    @Test mutating func `a turn that may wait is no stall before there is time to look`() {
        context.useUpLooks(in: world)
        let next = supervisor.poll(at: Self.begin + Self.threshold, in: world)
        #expect(records.isEmpty && next > Self.begin + Self.threshold)
        context.beginPass()
        supervisor.poll(at: next, in: world)
        #expect(records.isEmpty && world.suppressed.current == SuppressionCounts())
        #expect(supervisor.log.isUncertain, "it has been looked at")
    }

    /// In no pass there is time.
    @Test(arguments: [false, true])
    mutating func `a turn is looked at in the end`(mayWait: Bool) {
        source.isInRun.store(mayWait, ordering: .relaxed)
        context.useUpLooks(in: world)
        var next = Self.begin + Self.threshold
        for _ in 0..<LookBudget.mostDelays { advance(&next, to: supervisor.poll(at: next, in: world)) }
        #expect(records.isEmpty)
        supervisor.poll(at: next, in: world)
        #expect(records.map { $0.samples.map(\.isOutOfTime) } == (mayWait ? [] : [[false]]))
        #expect(records.allSatisfy { $0.duration == next - Self.begin })
    }

    /// The last look was a threshold before, if there was one.
    @Test(arguments: [false, true])
    mutating func `a turn that ends before the look has been missed, unless it was excused`(wasExcused: Bool) {
        let first: UInt64 = wasExcused ? 2 : 1
        if wasExcused { poll(after: 1) }
        context.useUpLooks(in: world)
        poll(after: first)
        #expect(records.isEmpty)
        loop.recorder.endTurn(at: Self.begin + first * Self.threshold + 1)
        poll(after: first + 1)
        #expect(records.map(\.missed) == (wasExcused ? [] : [1]))
        #expect(records.allSatisfy { $0.duration == Self.threshold + 1 })
    }
}
