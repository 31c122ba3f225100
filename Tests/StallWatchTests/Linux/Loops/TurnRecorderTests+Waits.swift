import TestSupport
import Synchronization
import Testing

@testable import LinuxSupport
@testable import StallWatch

/// Waits, modes, gaps and threads.
extension TurnRecorderTests {
    private var leftWait: UInt64 { recorder.snapshot().leftWait }

    /// Saturation is measured from the end of the last wait.
    @Test func theEndOfTheLastWaitIsKeptOverManyTurns() {
        #expect(leftWait == 0)
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        for pass in 2...50 as ClosedRange<UInt64> {
            recorder.reachSources { pass * 10 }
            #expect(leftWait == 10)
        }
        recorder.enterWait(at: 600)
        #expect(leftWait == 0)
        recorder.leaveWait(at: 700)
        #expect(leftWait == 700)
    }

    @Test func aLoopThatReentersAtOnceHasNotWaited() {
        let first: UInt64 = 1_000_000_000
        recorder.enter(at: first)
        recorder.exit(at: first + 10)
        let soon = first + 10 + TurnRecorder.longestReentry
        recorder.enter(at: soon)
        #expect(leftWait == first)
        recorder.exit(at: soon + 10)
        let late = soon + 10 + TurnRecorder.longestReentry + 1
        recorder.enter(at: late)
        #expect(leftWait == late)
    }

    @Test func aNestedRunDoesNotChangeWhenTheLoopLeftItsWait() {
        recorder.enter(at: 10)
        recorder.enter(at: 10 + 2 * TurnRecorder.longestReentry)
        #expect(leftWait == 10)
    }

    @Test func everyRunHasItsMode() {
        recorder.enter(at: 10)
        #expect(recorder.snapshot().mode == 0)
        recorder.noteMode(3)
        #expect(recorder.snapshot().mode == 3)
        recorder.enter(at: 20)
        #expect(recorder.snapshot().mode == 0, "the nested run's mode has no name")
        recorder.noteMode(255)
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

/// The end of a saturation.
extension TurnRecorderTests {
    @Test func theNextWaitEndsAMarkedSaturation() {
        recorder.leaveWait(at: 10)
        recorder.markSaturated(10)
        recorder.reachSources { 20 }
        recorder.reachSources { 30 }
        #expect(recorder.saturationEnd == nil)
        recorder.enterWait(at: 40)
        #expect(recorder.saturationEnd == 40)
        recorder.leaveWait(at: 50)
        recorder.enterWait(at: 60)
        #expect(recorder.saturationEnd == 40, "later waits do not change the end")
        recorder.leaveWait(at: 70)
        recorder.markSaturated(70)
        #expect(recorder.saturationEnd == nil)
    }

    @Test func aLoopThatExitsEndsItsMarkedSaturation() {
        recorder.enter(at: 10)
        recorder.markSaturated(10)
        recorder.exit(at: 40)
        #expect(recorder.saturationEnd == 40)
        recorder.enter(at: 50 + TurnRecorder.longestReentry)
        #expect(recorder.saturationEnd == 40)
    }
}
