import Testing

@testable import StallWatch

/// Stalled turns.
extension TurnRecorderTests {
    @Test func theEndOfAMarkedTurnIsStoredAndRings() {
        recorder.enter(at: 10)
        #expect(recorder.markStalled(10) == nil)
        #expect(recorder.stalledTurnEnd(10) == nil)
        #expect(!alarm.sleep(until: 0))

        recorder.enterWait(at: 50)
        #expect(recorder.stalledTurnEnd(10) == 50)
        #expect(alarm.sleep(until: 0))

        recorder.leaveWait(at: 60)
        recorder.enterWait(at: 70)
        #expect(recorder.stalledTurnEnd(10) == 50)
        #expect(!alarm.sleep(until: 0), "only the marked turn rings")
    }

    /// The turn may end between the poll that found it late and the mark.
    @Test func theEndOfATurnMarkedTooLateIsStoredAndRings() {
        recorder.enter(at: 10)
        recorder.enterWait(at: 50)
        #expect(recorder.markStalled(10) == 50)
        #expect(alarm.sleep(until: 0), "the loop does not ring for this turn")
        recorder.leaveWait(at: 60)
        recorder.enterWait(at: 70)
        #expect(recorder.stalledTurnEnd(10) == 50)
    }

    @Test(arguments: [0, 1, 2])
    func aMarkedTurnEndsAtEveryKindOfActivity(way: Int) {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        #expect(recorder.markStalled(10) == nil)
        switch way {
        case 0: recorder.exit(at: 50)
        case 1: recorder.enter(at: 50)
        default: recorder.reachSources { 50 }
        }
        #expect(recorder.stalledTurnEnd(10) == 50)
        #expect(alarm.sleep(until: 0))
    }

    @Test func aClearedMarkDoesNotRing() {
        recorder.enter(at: 10)
        #expect(recorder.markStalled(10) == nil)
        recorder.clearStalled()
        recorder.enterWait(at: 20)
        #expect(!alarm.sleep(until: 0))
    }

    @Test func consecutiveStallsHaveEndsOfTheirOwn() {
        recorder.enter(at: 10)
        #expect(recorder.markStalled(10) == nil)
        recorder.reachSources { 11 }
        recorder.reachSources { 20 }
        #expect(recorder.stalledTurnEnd(10) == 20)
        recorder.clearStalled()
        #expect(recorder.markStalled(20) == nil)
        #expect(recorder.stalledTurnEnd(20) == nil)
        recorder.enterWait(at: 90)
        #expect(recorder.stalledTurnEnd(20) == 90)
    }
}

/// The parked watchdog.
extension TurnRecorderTests {
    @Test func aTurnWakesAParkedWatchdog() {
        // The flag is set at this point; without a wake-up, `park` would never return.
        alarm.park {
            recorder.enter(at: 10)
            return true
        }
        #expect(recorder.snapshot().began == 10)
    }

    @Test func noTurnRingsWhileTheWatchdogIsNotParked() {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        recorder.reachSources { 12 }
        recorder.enterWait(at: 13)
        recorder.leaveWait(at: 14)
        recorder.exit(at: 15)
        #expect(!alarm.sleep(until: 0))
    }
}
