import Synchronization
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// A supervisor that learns its loop's threshold.
@Suite struct AdaptiveSupervisorTests {
    private static let millisecond: UInt64 = 1_000_000
    private static let minute: UInt64 = 60_000_000_000

    private final class Source: LoopSource {
        let kind = LoopKind.runLoop
        func target(of recorder: TurnRecorder) -> CaptureTarget { .thread(.max) }
    }

    private final class Capturer: StackCapturing {
        let methods = [CapturedStack.Method.read]
        func capture(thread: Int32, mayStop: Bool) throws(CaptureError) -> CapturedStack { .stub([0x1000]) }
        func images() -> ImageList { ImageList() }
        func leave(processor: Int32) {}
    }

    private let world = WatchedWorld(at: Self.minute)
    private let loop = LoopMonitor(
        label: "adaptive", threshold: 250 * Self.millisecond, floor: 10 * Self.millisecond,
        recorder: TurnRecorder(alarm: WatchdogAlarm()), source: Source()
    )

    /// Runs sixteen minutes of turns of 4 ms, and returns the time afterwards.
    private func learn(_ supervisor: inout LoopSupervisor) -> UInt64 {
        for minute in 1...16 as ClosedRange<UInt64> {
            for _ in 0..<1_000 { loop.recorder.histogram.record(4 * Self.millisecond) }
            supervisor.poll(at: minute * Self.minute, in: world)
        }
        return 16 * Self.minute
    }

    @Test func `a learned threshold finds a stall, and the report says so`() throws {
        let services = world.services(Capturer())
        var supervisor = LoopSupervisor(loop, services)
        #expect(loop.threshold == 250 * Self.millisecond)
        let now = learn(&supervisor)
        // Four times 4 ms, up to an eighth more.
        #expect((16...18).contains(loop.threshold / Self.millisecond))
        #expect(loop.isThresholdAdaptive)
        loop.recorder.beginTurn(at: now)
        supervisor.poll(at: now + loop.threshold - 1, in: world)
        #expect(world.states == [])
        supervisor.poll(at: now + loop.threshold, in: world)
        let record = try #require(world.records.withLock { $0.last })
        #expect(record.isThresholdAdaptive)
        #expect(record.threshold == loop.threshold)
        let report = ReportBuilder.stub().rawReport(of: record)
        #expect(report.isThresholdAdaptive == true)
        #expect(report.thresholdMilliseconds == 16.777)
    }

    @Test func `a new threshold begins at its ceiling`() {
        let services = world.services(Capturer())
        var supervisor = LoopSupervisor(loop, services)
        let now = learn(&supervisor)
        loop.setThreshold(5 * Self.millisecond...100 * Self.millisecond)
        supervisor.poll(at: now + 1, in: world)
        #expect(loop.threshold == 100 * Self.millisecond)
        loop.setThreshold(70 * Self.millisecond...70 * Self.millisecond)
        supervisor.poll(at: now + 2, in: world)
        #expect(loop.threshold == 70 * Self.millisecond)
        #expect(!loop.isThresholdAdaptive)
    }

    @Test(arguments: [
        StallThreshold.adaptive(floor: .milliseconds(4), ceiling: .milliseconds(100)),
        .adaptive(floor: .milliseconds(200), ceiling: .milliseconds(100)),
        .adaptive(floor: .milliseconds(20), ceiling: .seconds(24 * 60 * 60 + 1)), .fixed(.zero),
    ])
    func `bounds out of range are refused`(threshold: StallThreshold) {
        let error = #expect(throws: StallWatchError.self) {
            try StallMonitor(.init(threshold: threshold, reports: .none))
        }
        #expect(error?.code == .invalidConfiguration)
    }
}
