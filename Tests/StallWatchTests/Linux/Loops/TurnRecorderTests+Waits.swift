import TestSupport
import Synchronization
import Testing

@testable import LinuxSupport
@testable import StallWatch

/// Waits, modes, gaps and threads.
extension TurnRecorderTests {
    @Test func everyRunHasItsMode() {
        recorder.enter(at: 10)
        #expect(recorder.snapshot().mode == 0)
        recorder.setMode(3)
        #expect(recorder.snapshot().mode == 3)
        recorder.enter(at: 20)
        #expect(recorder.snapshot().mode == 0, "the nested run's mode has no name")
        recorder.setMode(255)
        #expect(recorder.snapshot().mode == 255)
        recorder.exit(at: 30)
        #expect(recorder.snapshot().mode == 3)
        recorder.exit(at: 40)
        #expect(recorder.snapshot().mode == 0)
    }

    @Test func aGapBetweenTwoRunsIsATurnIfConfigured() {
        let recorder = TurnRecorder(alarm: alarm, watchGaps: true)
        recorder.enter(at: 10)
        #expect(!recorder.snapshot().isGap)
        recorder.exit(at: 20)
        #expect(recorder.snapshot().isGap)
        #expect(recorder.snapshot().began == 20)
        recorder.enter(at: 30)
        #expect(!recorder.snapshot().isGap)
        #expect(recorder.snapshot().began == 30)
        recorder.enter(at: 40)
        recorder.exit(at: 50)
        #expect(!recorder.snapshot().isGap, "the callout of the outer run goes on")
    }

    @Test func `the thread of a loop that never waits is known`() {
        // It ran before it was observed.
        recorder.reachSources { 10 }
        #expect(recorder.lastThread == ownThread())
    }

    @Test func theThreadThatRunsTheLoopIsKnown() throws {
        #expect(recorder.lastThread == nil)
        recorder.enter(at: 10)
        #expect(recorder.lastThread == ownThread())
        let isDone = Semaphore()
        let other = Mutex<Int32?>(nil)
        let thread = try WorkerThread(name: "test-loop") { [recorder] in
            recorder.leaveWait(at: 20)
            other.withLock { $0 = ownThread() }
            isDone.post()
        }
        thread.join()
        try #require(isDone.wait(until: 0))
        #expect(recorder.lastThread == other.withLock { $0 })
        #expect(recorder.lastThread != ownThread())
    }
}

/// How the loop has spent its time.
extension TurnRecorderTests {
    @Test func waitsAndLongGapsAreIdleTime() {
        recorder.enter(at: 10_000_000)
        recorder.enterWait(at: 20_000_000)
        #expect(recorder.load(at: 25_000_000).idle == 15_000_000, "the time before the first turn, and 5 ms")
        recorder.leaveWait(at: 30_000_000)
        recorder.exit(at: 40_000_000)
        #expect(recorder.load(at: 40_500_000).idle == 20_000_000, "the loop may enter again at once")
        #expect(recorder.load(at: 45_000_000).idle == 25_000_000)
        #expect(recorder.load(at: 45_000_000).isOutside)
        recorder.enter(at: 50_000_000)
        let load = recorder.load(at: 60_000_000)
        #expect(load.idle == 30_000_000)
        #expect(load.busy == 20_000_000)
        #expect(load.turns == 3)
        #expect(!load.isOutside)
    }
}
