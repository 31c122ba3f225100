import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct WatchdogAlarmTests {
    let alarm = WatchdogAlarm()

    /// Parks another thread, and requires that it wakes up.
    private func park(if mayPark: @escaping @Sendable () -> Bool) throws {
        let isAwake = Semaphore()
        let watchdog = try WorkerThread(name: "test-watchdog") { [alarm] in
            alarm.park(if: mayPark)
            isAwake.post()
        }
        watchdog.detach()
        try #require(isAwake.wait(until: endOfPatience))
    }

    @Test func aRingEndsTheSleep() {
        alarm.ring()
        #expect(alarm.sleep(until: endOfPatience))
        #expect(!alarm.sleep(until: 0), "one ring ends one sleep")
    }

    @Test func `many rings end one sleep`() {
        for _ in 0..<1_000 { alarm.ring() }
        #expect(alarm.sleep(until: 0))
        #expect(!alarm.sleep(until: 0))
        alarm.ring()
        #expect(alarm.sleep(until: 0), "a ring after it ends the next one")
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

    @Test func `a watchdog that may not park returns and clears the flag`() {
        alarm.park { false }
        alarm.wakeIfParked()
        #expect(!alarm.sleep(until: 0))
    }

    @Test func aRingEndsThePark() throws {
        alarm.ring()
        try park { true }
        #expect(!alarm.sleep(until: 0))
    }

    /// Each turn begins while the watchdog is about to park, is parked, or is about to wake up; it must miss none.
    @Test func `no turn is missed by a watchdog that parks all the time`() throws {
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
            try #require(isSeen.wait(until: endOfPatience), "turn \(turn) was missed")
            recorder.enterWait(at: turn * 10 + 5)
        }
        try #require(isDone.wait(until: endOfPatience))
        watchdog.join()
    }
}

/// Tests that of two threads that each store one value and then load the other's, at least one sees the other's store.
@Suite(.serialized) struct AsymmetricFenceTests {
    /// Enough rounds to find a fault: with a fence in the watchdog's thread alone, about fifty of them fail.
    private static let rounds = 10_000

    @Test(arguments: [false, true])
    func atLeastOneThreadSeesTheOthersStore(isPrepared: Bool) throws {
        let litmus = Litmus(rounds: Self.rounds)
        if isPrepared { litmus.fence.prepare() }
        let loop = try WorkerThread(name: "test-loop") {
            litmus.run { round in
                litmus.delay(round % 32)
                litmus.began.store(round, ordering: .releasing)
                litmus.fence.light()
                litmus.loopSaw.store(litmus.parked.load(ordering: .relaxed), ordering: .relaxed)
            }
        }
        litmus.run { round in
            litmus.delay(round / 32 % 32)
            litmus.parked.store(round, ordering: .releasing)
            litmus.fence.heavy()
            litmus.watchdogSaw.store(litmus.began.load(ordering: .relaxed), ordering: .relaxed)
        }
        loop.join()
        #expect(litmus.misses.load(ordering: .relaxed) == 0)
    }
}

/// A litmus test in which two threads run their parts of each round at the same time.
private final class Litmus: Sendable {
    let fence = AsymmetricFence()
    let began = Atomic<Int>(0)
    let parked = Atomic<Int>(0)
    let loopSaw = Atomic<Int>(0)
    let watchdogSaw = Atomic<Int>(0)
    /// The number of times that a thread found a round in which neither saw the other's store.
    let misses = Atomic<Int>(0)
    private let rounds: Int
    private let arrivals = Atomic<Int>(0)

    init(rounds: Int) {
        self.rounds = rounds
    }

    func run(_ part: (_ round: Int) -> Void) {
        for round in 1...rounds {
            meet(4 * round - 2)
            part(round)
            meet(4 * round)
            // Both threads check, so that neither continues before the other has checked: each miss counts twice.
            if loopSaw.load(ordering: .relaxed) < round, watchdogSaw.load(ordering: .relaxed) < round {
                misses.wrappingAdd(1, ordering: .relaxed)
            }
        }
    }

    /// Delays a part, so that the parts overlap differently in each round.
    func delay(_ loads: Int) {
        for _ in 0..<loads { _ = arrivals.load(ordering: .relaxed) }
    }

    /// Waits on the CPU until both threads have arrived.
    private func meet(_ count: Int) {
        arrivals.wrappingAdd(1, ordering: .sequentiallyConsistent)
        var looks = 0
        while arrivals.load(ordering: .sequentiallyConsistent) < count {
            looks += 1
            // The other thread may wait for this CPU.
            if looks % 2000 == 0 { sched_yield() }
        }
    }
}
