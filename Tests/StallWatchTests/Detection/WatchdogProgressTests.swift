import LinuxSupport
import StackCapture
import TestSupport
import Testing

@testable import StallWatch

/// The watchdog's answers to the question whether loops make progress.
@Suite struct WatchdogProgressTests {
    private final class NoCapturer: StackCapturing {
        let methods: [CapturedStack.Method] = []

        func capture(thread: Int32, mayStop: Bool) throws(CaptureError) -> CapturedStack {
            throw CaptureError(description: "not captured")
        }

        func images() -> ImageList { ImageList() }

        func leave(processor: Int32) {}
    }

    /// Runs a watchdog over probes with these labels while `body` runs.
    private func withWatchdog(_ labels: [String], _ body: (Watchdog, [TurnRecorder]) throws -> Void) throws {
        let watchdog = Watchdog(rules: WatchdogOptions()) { _ in }
        let recorders = labels.map { _ in TurnRecorder(alarm: watchdog.alarm) }
        for (label, recorder) in zip(labels, recorders) {
            let source = try ProbeSource(LoopProbe(label: label), recorder)
            watchdog.add([LoopMonitor(label: label, threshold: 50_000_000, recorder: recorder, source: source)])
        }
        let thread = try WorkerThread(name: "test-watchdog") { watchdog.run(capturing: NoCapturer()) }
        defer {
            watchdog.stop()
            thread.join()
            #expect(watchdog.readProgress(until: monotonicNow() + 60_000_000_000) == nil, "nothing to wait for")
        }
        try body(watchdog, recorders)
    }

    private func states(_ watchdog: Watchdog) -> [LoopProgress.State]? {
        watchdog.readProgress(until: monotonicNow() + 20_000_000_000)?.loops.map(\.state)
    }

    @Test func `a parked watchdog answers`() throws {
        try withWatchdog(["a", "b"]) { watchdog, recorders in
            #expect(states(watchdog) == [.starting, .starting])
            recorders[0].beginTurn(at: monotonicNow())
            recorders[0].endTurn(at: monotonicNow())
            #expect(states(watchdog) == [.running, .starting])
        }
    }

    @Test func `a loop is stalled from its threshold until the end of its turn`() throws {
        try withWatchdog(["a"]) { watchdog, recorders in
            let begun = monotonicNow()
            recorders[0].beginTurn(at: begun)
            #expect(eventually { states(watchdog) == [.stalled] })
            let reading = try #require(watchdog.readProgress(until: monotonicNow() + 20_000_000_000))
            #expect(reading.loops == [LoopProgress(label: "a", state: .stalled, since: begun)])
            #expect(reading.time - begun >= 50_000_000)
            recorders[0].endTurn(at: monotonicNow())
            #expect(states(watchdog) == [.running])
        }
    }

    @Test func `a pause is part of the answer`() throws {
        try withWatchdog(["a"]) { watchdog, recorders in
            recorders[0].beginTurn(at: monotonicNow())
            watchdog.pauses.begin()
            #expect(watchdog.readProgress(until: monotonicNow() + 20_000_000_000)?.isPaused == true)
            #expect(states(watchdog) == [.running])
            watchdog.pauses.end(at: monotonicNow())
            #expect(watchdog.readProgress(until: monotonicNow() + 20_000_000_000)?.isPaused == false)
        }
    }

    @Test func `an answer has the loops that were added before the question`() throws {
        try withWatchdog([]) { watchdog, _ in
            for number in 1...20 {
                let recorder = TurnRecorder(alarm: watchdog.alarm)
                let source = try ProbeSource(LoopProbe(label: "\(number)"), recorder)
                watchdog.add([LoopMonitor(label: "\(number)", threshold: 1, recorder: recorder, source: source)])
                #expect(states(watchdog)?.count == number)
            }
        }
    }

    @Test func `a watchdog that does not run gives no answer`() {
        let watchdog = Watchdog(rules: WatchdogOptions()) { _ in }
        #expect(watchdog.readProgress(until: monotonicNow() + 10_000_000) == nil)
    }
}
