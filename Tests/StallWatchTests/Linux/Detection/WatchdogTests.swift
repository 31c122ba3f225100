import Foundation
import LinuxSupport
import StackCapture
import Testing
import TestSupport

@testable import StallReports
@testable import StallWatch

@Suite struct PauseStateTests {
    @Test func `time before the end of the outermost pause does not count`() {
        let pauses = PauseState()
        #expect(pauses.countingFrom(at: 400) == 0)
        pauses.begin()
        #expect(pauses.countingFrom(at: 500) == 500)
        pauses.begin()
        pauses.end(at: 600)
        #expect(pauses.countingFrom(at: 700) == 700)
        pauses.end(at: 800)
        #expect(pauses.countingFrom(at: 900) == 800)
    }
}

@Suite struct WatchdogSleepTests {
    private func loop(
        _ threshold: UInt64, mayWake: Bool = true, mayPark: Bool = true, isLoadFollowed: Bool = false
    ) -> WatchdogSleep.FollowedLoop {
        .init(threshold: threshold, mayWake: mayWake, mayPark: mayPark, isLoadFollowed: isLoadFollowed)
    }

    private func sleep(_ loops: [WatchdogSleep.FollowedLoop], until deadline: UInt64) -> WatchdogSleep {
        WatchdogSleep(loops, at: 1_000, until: deadline)
    }

    @Test func `while all loops wait, a turn ends the sleep`() {
        #expect(sleep([loop(250), loop(500)], until: .max) == sleep([], until: .max))
        #expect(sleep([loop(250)], until: .max).isParked)
        // The next poll is for a heartbeat, which may come later than a turn that begins now is late.
        let heartbeat = loop(500, mayWake: false)
        #expect(sleep([loop(250), heartbeat], until: 1_500) == WatchdogSleep(deadline: 1_500, isParked: true))
        #expect(sleep([loop(250), heartbeat], until: 1_250) == WatchdogSleep(deadline: 1_250, isParked: false))
        #expect(sleep([loop(250, isLoadFollowed: true), heartbeat], until: 1_250).isParked)
    }

    /// Parked, it would not sleep at all, because a loop is in a turn.
    @Test func `beside a loop in a turn it ends before a turn can be late`() {
        let busy = loop(1_000, mayWake: false, mayPark: false)
        #expect(sleep([loop(250), busy], until: 2_000) == WatchdogSleep(deadline: 1_250, isParked: false))
        #expect(sleep([loop(250), loop(100), busy], until: 2_000) == WatchdogSleep(deadline: 1_100, isParked: false))
        #expect(sleep([loop(250), busy], until: 1_200) == WatchdogSleep(deadline: 1_200, isParked: false))
        #expect(sleep([busy], until: 2_000) == WatchdogSleep(deadline: 2_000, isParked: false))
        #expect(sleep([loop(250, isLoadFollowed: true), busy], until: 1_200).deadline == 1_200)
    }
}

@Suite struct SuppressionCountsTests {
    private func decoded(_ json: String) throws -> SuppressionCounts {
        try JSONDecoder().decode(SuppressionCounts.self, from: Data(json.utf8))
    }

    @Test func everyReasonIsCountedByItself() {
        let counter = SuppressionCounter()
        counter.add(.paused)
        counter.add(.debugger)
        counter.add(.paused)
        for reason in SuppressionReason.allCases {
            #expect(counter.current[reason] == (reason == .paused ? 2 : reason == .debugger ? 1 : 0))
        }
    }

    @Test func reasonsWithoutACountAreWrittenAsZero() throws {
        var counts = SuppressionCounts()
        counts[.suspended] = 3
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(counts))
        let object = try #require(json as? [String: Int])
        #expect(Set(object.keys) == Set(SuppressionReason.allCases.map(\.rawValue)))
        #expect(object["suspended"] == 3)
        #expect(object.values.reduce(0, +) == 3)
    }

    @Test func aReasonOfAnotherVersionIsKept() throws {
        let counts = try decoded(#"{"moonPhase": 2, "paused": 1, "debugger": 0}"#)
        #expect(counts[.paused] == 1)
        #expect(counts[.debugger] == 0)
        let json = String(decoding: try JSONEncoder().encode(counts), as: UTF8.self)
        #expect(json.contains(#""moonPhase":2"#))
    }
}

/// Simulates how often the watchdog polls loops that turn, and checks the bounds that ``StallDetector`` proves.
@Suite struct WakeUpTests {
    private static let threshold: UInt64 = 1_000_000
    private static let duration: UInt64 = 100 * threshold

    private struct Loop {
        var turns: [Range<UInt64>] = []

        init(turns lengths: ClosedRange<UInt64>, waits: ClosedRange<UInt64>, _ generator: inout SeededGenerator) {
            var time = UInt64.random(in: 1...WakeUpTests.threshold, using: &generator)
            while time < WakeUpTests.duration {
                let end = time + UInt64.random(in: lengths, using: &generator)
                turns.append(time..<end)
                time = end + UInt64.random(in: waits, using: &generator)
            }
        }

        func snapshot(at time: UInt64) -> TurnSnapshot {
            let begun = turns.partitioningIndex { $0.lowerBound > time }
            let isOn = begun > 0 && turns[begun - 1].upperBound > time
            return TurnSnapshot(began: isOn ? turns[begun - 1].lowerBound : nil, number: UInt64(begun), nesting: 0)
        }

        func nextBegin(after time: UInt64) -> UInt64 {
            let next = turns.partitioningIndex { $0.lowerBound > time }
            return next < turns.count ? turns[next].lowerBound : .max
        }
    }

    private func wakeUps(_ loops: [Loop], checkAge: UInt64? = nil) -> [UInt64] {
        var detectors = loops.map { _ in StallDetector(threshold: Self.threshold) }
        var wakeUps: [UInt64] = []
        var time: UInt64 = 0
        while time < Self.duration {
            wakeUps.append(time)
            var next = UInt64.max
            for index in loops.indices {
                let snapshot = loops[index].snapshot(at: time)
                let decision = detectors[index].decide(snapshot, at: time, checkAge: checkAge)
                if !decision.actions.isEmpty { Issue.record("a stall was found, but there is none") }
                if let began = snapshot.began, decision.nextPoll != began + (checkAge ?? Self.threshold) {
                    Issue.record("the next poll is not at the current turn's threshold or check age")
                }
                next = min(next, decision.nextPoll ?? .max)
            }
            // The watchdog is parked, and the next turn wakes it.
            advance(&time, to: next == .max ? loops.map { $0.nextBegin(after: time) }.min() ?? .max : next)
        }
        return wakeUps
    }

    @Test(arguments: [1, 20], [1, 10, 100, 500] as [UInt64])
    func `polls are a threshold minus the longest turn apart`(loops: Int, thousandths: UInt64) {
        var generator = SeededGenerator(seed: thousandths)
        let longest = Self.threshold / 1_000 * thousandths
        let turning = (0..<loops).map { _ in
            Loop(turns: 1...longest, waits: 1...(Self.threshold / 20), &generator)
        }
        let times = wakeUps(turning)
        #expect(times.count >= 90, "the loops turn")
        // The first poll finds no turn, and the second comes with the first turn.
        for (earlier, later) in zip(times.dropFirst(), times.dropFirst(2)) {
            #expect(later - earlier >= Self.threshold - longest)
        }
        #expect(UInt64(times.count) <= Self.duration / (Self.threshold - longest) + 2)
    }

    /// The bound holds for every length of turn, and for the age from which turns are checked.
    @Test(arguments: [nil, WakeUpTests.threshold / 8])
    func `one loop is polled at most twice per threshold or check age`(checkAge: UInt64?) {
        var generator = SeededGenerator(seed: 4)
        let age = checkAge ?? Self.threshold
        for longest in [age / 3, age / 2, age * 9 / 10, age - 1] {
            let loop = Loop(turns: (longest / 2)...longest, waits: 1...(age / 10), &generator)
            let times = wakeUps([loop], checkAge: checkAge)
            #expect(times.count >= 90, "the loop turns")
            for (first, third) in zip(times, times.dropFirst(2)) { #expect(third - first > age) }
        }
    }

    /// The loop of the proof: no watchdog that is never late can poll it less often.
    @Test func `turns of half a threshold need two polls per threshold`() {
        var generator = SeededGenerator(seed: 5)
        let half = Self.threshold / 2
        let times = wakeUps([Loop(turns: (half + 2)...(half + 2), waits: 1...1, &generator)])
        #expect(times.count > 190)
    }

    /// One poll when the turn begins, one to see that it is over, and one to see that no other follows.
    @Test func `a loop with long waits is polled three times per turn`() {
        var generator = SeededGenerator(seed: 7)
        let wait = 4 * Self.threshold
        let loop = Loop(turns: 1...100, waits: wait...wait, &generator)
        #expect(wakeUps([loop]).count <= 3 * loop.turns.count + 1)
    }
}

extension Array {
    /// Returns the index of the first element for which `belongs` holds; it must hold for all later elements, too.
    fileprivate func partitioningIndex(_ belongs: (Element) -> Bool) -> Int {
        var low = startIndex
        var high = endIndex
        while low < high {
            let middle = (low + high) / 2
            if belongs(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// The watchdog's answers to the question whether loops make progress.
@Suite struct WatchdogProgressTests {
    /// Runs a watchdog over probes with these labels while `body` runs.
    private func withWatchdog(_ labels: [String], _ body: (Watchdog, [TurnRecorder]) throws -> Void) throws {
        let watchdog = Watchdog(options: WatchdogOptions()) { _ in }
        let recorders = labels.map { _ in TurnRecorder(alarm: watchdog.alarm) }
        for (label, recorder) in zip(labels, recorders) {
            let source = try ProbeSource(LoopProbe(label: label), recorder)
            watchdog.add([LoopMonitor(label: label, threshold: 50_000_000, recorder: recorder, source: source)])
        }
        let thread = try WorkerThread(name: "test-watchdog") {
            watchdog.run(capturing: StubCapturer(.failure(.notTried)))
        }
        defer {
            watchdog.stop()
            thread.join()
            #expect(watchdog.readProgress(until: endOfPatience) == nil, "nothing to wait for")
        }
        try body(watchdog, recorders)
    }

    private func states(_ watchdog: Watchdog) -> [LoopProgress.State]? {
        watchdog.readProgress(until: endOfPatience)?.loops.map(\.state)
    }

    @Test func `a loop that was added with the same label stays`() throws {
        try withWatchdog([]) { watchdog, _ in
            func loop() throws -> LoopMonitor {
                let recorder = TurnRecorder(alarm: watchdog.alarm)
                let source = try ProbeSource(LoopProbe(label: "a"), recorder)
                return LoopMonitor(label: "a", threshold: 50_000_000, recorder: recorder, source: source)
            }
            let (first, second) = (try loop(), try loop())
            watchdog.add([first])
            watchdog.add([second])
            watchdog.remove([first])
            second.recorder.beginTurn(at: monotonicNow())
            second.recorder.endTurn(at: monotonicNow())
            #expect(states(watchdog) == [.running])
        }
    }

    @Test func `a pause is part of the answer`() throws {
        try withWatchdog(["a"]) { watchdog, recorders in
            watchdog.pauses.begin()
            recorders[0].beginTurn(at: monotonicNow())
            #expect(watchdog.readProgress(until: endOfPatience)?.isPaused == true)
            #expect(states(watchdog) == [.running])
            watchdog.pauses.end(at: monotonicNow())
            #expect(watchdog.readProgress(until: endOfPatience)?.isPaused == false)
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

    @Test func `an answer has no loop of the monitor's own`() throws {
        try withWatchdog(["a"]) { watchdog, _ in
            watchdog.add([.stub("own", threshold: 50_000_000, OwnSource())])
            #expect(watchdog.readProgress(until: endOfPatience)?.loops.map(\.label) == ["a"])
        }
    }

    @Test func `a watchdog that does not run gives no answer`() {
        let watchdog = Watchdog(options: WatchdogOptions()) { _ in }
        #expect(watchdog.readProgress(until: monotonicNow() + 10_000_000) == nil)
    }
}
