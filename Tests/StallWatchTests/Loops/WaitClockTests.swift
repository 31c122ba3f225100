import Testing

@testable import StallWatch

@Suite struct WaitClockTests {
    private let clock = WaitClock()

    @Test func waitsAddUp() {
        #expect(clock.total(at: 50) == 0)
        clock.begin(at: 100)
        clock.end(at: 130)
        clock.begin(at: 200)
        clock.end(at: 205)
        #expect(clock.total(at: 300) == 35)
    }

    @Test func theCurrentWaitCountsSoFar() {
        clock.begin(at: 100)
        #expect(clock.total(at: 110) == 10)
        #expect(clock.total(at: 90) == 0, "the wait began after this time")
        clock.end(at: 120)
        #expect(clock.total(at: 130) == 20)
    }

    @Test func anEndWithoutABeginningIsNoWait() {
        clock.end(at: 1_000)
        #expect(clock.total(at: 2_000) == 0)
    }

    @Test func aRecorderNotesItsWaits() {
        let recorder = TurnRecorder(alarm: WatchdogAlarm())
        recorder.enter(at: 10)
        recorder.enterWait(at: 20)
        recorder.leaveWait(at: 50)
        recorder.reachSources { 51 }
        #expect(recorder.waits.total(at: 60) == 30)
        recorder.enterWait(at: 60)
        #expect(recorder.waits.total(at: 65) == 35)
    }
}
