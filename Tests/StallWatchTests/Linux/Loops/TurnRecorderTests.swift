import LinuxSupport
import Synchronization
import TestSupport
import Testing

@testable import StallWatch

/// The turns that follow from given activities; times are small numbers, because the recorder uses no clock.
@Suite struct TurnRecorderTests {
    let alarm = WatchdogAlarm()
    let recorder: TurnRecorder

    init() {
        recorder = TurnRecorder(alarm: alarm)
    }

    /// The number of the turn, when it began, and how deep it is nested: "3@20+1", or "3" between turns.
    private var now: String {
        let turn = recorder.snapshot()
        let began = turn.began.map { "@\($0)" } ?? ""
        return "\(turn.number)\(began)\(turn.nesting > 0 ? "+\(turn.nesting)" : "")"
    }

    private func perform(_ activity: Substring, at time: UInt64) {
        switch activity {
        case "enter": recorder.enter(at: time)
        case "exit": recorder.exit(at: time)
        case "wait": recorder.enterWait(at: time)
        case "leave": recorder.leaveWait(at: time)
        case "sources": recorder.reachSources { time }
        default: Issue.record("\(activity) is no activity")
        }
    }

    /// Activities with their times, and the turn after each.
    private static let runs: [[String]] = [
        // Timers and main-queue blocks run after AfterWaiting, and the pass that follows belongs to the same turn.
        [
            "enter 10: 1@10", "sources 11: 1@10", "wait 20: 1", "leave 30: 2@30", "sources 35: 2@30", "wait 40: 2",
        ],
        // A loop that always has events never waits: each pass that handles sources is a turn.
        ["enter 10: 1@10", "sources 11: 1@10", "sources 20: 2@20", "sources 30: 3@30", "wait 40: 3"],
        // `RunLoop.run()` leaves and enters the loop for every source that it handles.
        ["enter 10: 1@10", "sources 11: 1@10", "exit 20: 1", "enter 21: 2@21", "sources 22: 2@21"],
        // A nested run has turns of its own, whether a source or a timer makes it.
        [
            "enter 10: 1@10", "sources 11: 1@10", "enter 20: 2@20+1", "sources 21: 2@20+1", "wait 30: 2+1",
            "leave 40: 3@40+1", "exit 50: 4@50", "sources 60: 5@60", "exit 70: 5",
        ],
        [
            "enter 10: 1@10", "sources 11: 1@10", "wait 12: 1", "leave 13: 2@13", "enter 20: 3@20+1",
            "sources 21: 3@20+1", "wait 30: 3+1", "leave 40: 4@40+1", "exit 50: 5@50", "sources 60: 6@60",
            "exit 70: 6",
        ],
        [
            "enter 1: 1@1", "enter 2: 2@2+1", "enter 3: 3@3+2", "enter 4: 4@4+3", "exit 17: 5@17+2", "exit 18: 6@18+1",
            "exit 19: 7@19", "exit 30: 7",
        ],
        // Observers that are added in a callout see the loop's exit, but not its entry.
        ["leave 10: 1@10", "exit 20: 1", "enter 30: 2@30", "exit 40: 2"],
    ]

    @Test(arguments: runs) func `activities begin and end turns`(run: [String]) {
        #expect(now == "0")
        for step in run {
            let words = step.split { $0 == " " || $0 == ":" }
            perform(words[0], at: UInt64(words[1]) ?? 0)
            #expect(now == words[2], "after \(step)")
        }
    }

    /// glibc gives a new thread the stack, and with it the pthread_t, of one that has ended.
    @Test func `each thread that runs the loop is noted`() throws {
        for _ in 0..<5 {
            let noted = Mutex<Set<Int32>>([])
            let thread = try WorkerThread(name: "loop") { [recorder] in
                recorder.rememberThread()
                noted.withLock { $0 = WorkerThread.ids }
            }
            thread.join()
            let last = try #require(recorder.lastThread)
            #expect(noted.withLock { $0 }.contains(last))
        }
    }

    @Test func `the clock is read at the sources only for a new turn`() {
        var reads = 0
        let clock: () -> UInt64 = {
            reads += 1
            return 50
        }
        recorder.enter(at: 10)
        recorder.reachSources(now: clock)
        #expect(reads == 0)
        recorder.reachSources(now: clock)
        #expect(reads == 1)
    }
}

/// Runs that began before the loop was observed.
extension TurnRecorderTests {
    @Test(arguments: ["wait", "leave", "sources"]) func aRunInsideAnUnobservedRunIsNested(firstSign: String) {
        perform(firstSign[...], at: 10)
        recorder.leaveWait(at: 20)
        recorder.enter(at: 30)
        #expect(recorder.snapshot().nesting == 1)
        recorder.exit(at: 40)
        #expect(recorder.snapshot().began == 40, "the callout that made the nested run goes on")
        #expect(recorder.snapshot().nesting == 0)
        recorder.exit(at: 50)
        #expect(recorder.snapshot().began == nil)
    }

    @Test func theModeOfAnEarlierRunIsAdopted() {
        recorder.adoptMode(2)
        recorder.leaveWait(at: 10)
        #expect(recorder.snapshot().mode == 2)
        recorder.enter(at: 20)
        recorder.setMode(1)
        #expect(recorder.snapshot().mode == 1)
        recorder.exit(at: 30)
        #expect(recorder.snapshot().mode == 2)
    }

    @Test func aModeThatTheLoopNotedIsNotReplaced() {
        recorder.enter(at: 10)
        recorder.setMode(1)
        recorder.adoptMode(2)
        #expect(recorder.snapshot().mode == 1)
    }
}

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
    @Test func `the end of a turn marked too late is stored and rings`() {
        recorder.enter(at: 10)
        recorder.enterWait(at: 50)
        #expect(recorder.markStalled(10) == 50)
        #expect(alarm.sleep(until: 0), "the loop does not ring for this turn")
        recorder.leaveWait(at: 60)
        recorder.enterWait(at: 70)
        #expect(recorder.stalledTurnEnd(10) == 50)
    }

    @Test(arguments: ["exit", "enter", "sources"])
    func aMarkedTurnEndsAtEveryKindOfActivity(end: String) {
        recorder.enter(at: 10)
        recorder.reachSources { 11 }
        #expect(recorder.markStalled(10) == nil)
        perform(end[...], at: 50)
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
        #expect(recorder.lastThread == nil)
        recorder.reachSources { 10 }
        #expect(recorder.lastThread == ownThread())
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
