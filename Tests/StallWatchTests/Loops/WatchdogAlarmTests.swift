import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct WatchdogAlarmTests {
    let alarm = WatchdogAlarm()

    /// A timeout that suffices on any machine, in nanoseconds; it expires only if a wake-up is lost.
    private static let timeout: UInt64 = 30_000_000_000

    /// Parks another thread, and requires that it wakes up.
    private func park(if mayPark: @escaping @Sendable () -> Bool) throws {
        let isAwake = Semaphore()
        let watchdog = try WorkerThread(name: "test-watchdog") { [alarm] in
            alarm.park(if: mayPark)
            isAwake.post()
        }
        watchdog.detach()
        try #require(isAwake.wait(until: monotonicNow() + Self.timeout))
    }

    @Test func aRingEndsTheSleep() {
        alarm.ring()
        #expect(alarm.sleep(until: monotonicNow() + Self.timeout))
        #expect(!alarm.sleep(until: 0), "one ring ends one sleep")
    }

    @Test func theSleepEndsAtItsDeadline() {
        #expect(!alarm.sleep(until: monotonicNow() + 1_000))
    }

    @Test func onlyAParkedWatchdogIsWoken() {
        alarm.wakeIfParked()
        #expect(!alarm.sleep(until: 0))
    }

    @Test func manyLoopsWakeAParkedWatchdogOnce() throws {
        try park { [alarm] in
            for _ in 0..<10 { alarm.wakeIfParked() }
            return true
        }
        #expect(!alarm.sleep(until: 0), "one post for all of them")
    }

    @Test func aWatchdogThatMayNotParkReturnsAndClearsTheFlag() {
        alarm.park { false }
        alarm.wakeIfParked()
        #expect(!alarm.sleep(until: 0))
    }

    @Test func aRingEndsThePark() throws {
        alarm.ring()
        try park { true }
        #expect(!alarm.sleep(until: 0))
    }

    @Test func anotherThreadWakesTheWatchdog() throws {
        let isParking = Semaphore()
        let isAwake = Semaphore()
        let watchdog = try WorkerThread(name: "test-watchdog") { [alarm] in
            alarm.park {
                isParking.post()
                return true
            }
            isAwake.post()
        }
        try #require(isParking.wait(until: monotonicNow() + Self.timeout))
        alarm.wakeIfParked()
        try #require(isAwake.wait(until: monotonicNow() + Self.timeout))
        watchdog.join()
    }

    /// Each turn begins while the watchdog is about to park, is parked, or is about to wake up; it must miss none.
    @Test func noTurnIsMissedByAWatchdogThatParksAllTheTime() throws {
        let turns: UInt64 = 5_000
        let recorder = TurnRecorder(alarm: alarm)
        let isSeen = Semaphore()
        let isDone = Semaphore()
        let watchdog = try WorkerThread(name: "test-watchdog") { [alarm] in
            var seen: UInt64 = 0
            while seen < turns {
                let snapshot = recorder.snapshot()
                if snapshot.began != nil, snapshot.number > seen {
                    seen = snapshot.number
                    isSeen.post()
                }
                let last = seen
                alarm.park {
                    let snapshot = recorder.snapshot()
                    return last < turns && (snapshot.began == nil || snapshot.number == last)
                }
            }
            isDone.post()
        }
        for turn in 1...turns {
            recorder.leaveWait(at: turn * 10)
            try #require(isSeen.wait(until: monotonicNow() + Self.timeout), "turn \(turn) was missed")
            recorder.enterWait(at: turn * 10 + 5)
        }
        try #require(isDone.wait(until: monotonicNow() + Self.timeout))
        watchdog.join()
    }
}
