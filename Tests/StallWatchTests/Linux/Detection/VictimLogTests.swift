import Foundation
import StallReports
import Testing

@testable import StallWatch

/// Looks at what waits for a loop that stalls from 10 s to 12 s; times are in nanoseconds.
@Suite struct VictimLogTests {
    private static let second: UInt64 = 1_000_000_000
    private static let (start, end) = (10 * second, 12 * second)
    private var log = VictimLog()

    private func look(
        after milliseconds: UInt64, timers: [DueTimer]? = [], items: Int? = 0, first: UInt64 = 0x10,
        missing: [String] = []
    ) -> VictimLog.Look {
        .init(
            time: 10 * Self.second + milliseconds * 1_000_000, timers: timers, items: items,
            firstItem: items ?? 0 > 0 ? first : 0, missing: missing)
    }

    @Test func withoutALookNothingIsKnown() {
        #expect(log.victims(from: Self.start, until: Self.end) == nil)
    }

    @Test mutating func nothingWaitsIfNothingIsDue() throws {
        log.add(look(after: 250))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.timers == 0 && victims.mainQueueItems == 0 && victims.operations == nil)
        #expect(victims.longestTimerDelayMilliseconds == nil && victims.longestItemWaitMilliseconds == nil)
        #expect(victims.totalWaitMilliseconds == 0 && victims.harmMilliseconds(omitsItems: false) == 0)
    }

    @Test func `a look tells whether something waits`() {
        #expect(look(after: 250).hasVictims == false)
        #expect(look(after: 250, timers: nil, items: nil).hasVictims == false)
        #expect(look(after: 250, items: 1).hasVictims == true)
        let timers = [DueTimer(due: 1, interval: 0)]
        #expect(look(after: 250, timers: timers, items: nil, missing: ["items"]).hasVictims == true)
        #expect(look(after: 250, timers: nil, missing: ["timers"]).hasVictims == nil)
    }

    @Test mutating func timersThatAreDueWaitUntilTheEnd() throws {
        let first = DueTimer(due: 10 * Self.second + 100_000_000, interval: 0)
        log.add(look(after: 250, timers: [first]))
        let second = DueTimer(due: 11 * Self.second, interval: 300_000_000)
        log.add(look(after: 1_500, timers: [first, second]))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.timers == 2 && victims.longestTimerDelayMilliseconds == 1_900)
        #expect(victims.skippedFirings == 3 && victims.totalWaitMilliseconds == 2_900)
    }

    /// Due timers run in the turn of a source0 that stalls.
    @Test mutating func `a timer that the turn has run waited until the look that saw it last`() throws {
        let timers = [100, 200, 300].map { part in
            DueTimer(due: Self.start + part * 1_000_000, interval: 0, address: 0x100 * part)
        }
        log.add(look(after: 400, timers: timers))
        log.add(look(after: 1_000, timers: timers))
        log.add(look(after: 1_100, timers: [timers[2]]))
        log.add(look(after: 1_200))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.timers == 3 && victims.longestTimerDelayMilliseconds == 900)
        #expect(victims.totalWaitMilliseconds == 900 + 800 + 800)
    }

    @Test mutating func `a timer that is due again is one timer`() throws {
        let first = DueTimer(due: Self.start + 100_000_000, interval: 50_000_000, address: 0x10)
        log.add(look(after: 1_000, timers: [first]))
        let again = DueTimer(due: Self.start + 1_050_000_000, interval: 50_000_000, address: 0x10)
        log.add(look(after: 1_100, timers: [again]))
        let victims = try #require(log.victims(from: Self.start, until: Self.start + 1_150_000_000))
        #expect(victims.timers == 1 && victims.totalWaitMilliseconds == 900 + 100)
        #expect(victims.skippedFirings == 18 + 2)
    }

    /// As in a modal mode: the time before the stall is not its.
    @Test mutating func `a timer that was due before the stall waits from its begin`() throws {
        let timer = DueTimer(due: Self.start - 3_050_000_000, interval: 1_000_000_000)
        log.add(look(after: 1_000, timers: [timer]))
        let victims = try #require(log.victims(from: Self.start, until: Self.start + 1_500_000_000))
        #expect(victims.totalWaitMilliseconds == 1_500 && victims.longestTimerDelayMilliseconds == 4_550)
        // At 10.95 s; the next would be at 11.95 s.
        #expect(victims.skippedFirings == 1)
    }

    @Test mutating func anItemIsAsOldAsTheLookThatSawItFirst() throws {
        log.add(look(after: 250, items: 3))
        log.add(look(after: 1_000, items: 5))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.mainQueueItems == 5 && victims.longestItemWaitMilliseconds == 1_750)
        #expect(victims.totalWaitMilliseconds == 3 * 1_750 + 2 * 1_000)
    }

    /// A loop that serves one item at a time has another first one: how old the others are is not known.
    @Test mutating func itemsAfterAnotherFirstOneAreNew() throws {
        log.add(look(after: 250, items: 50))
        log.add(look(after: 1_000, items: 60, first: 0x20))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.mainQueueItems == 60 && victims.longestItemWaitMilliseconds == 1_000)
    }

    /// The monitor's own item and spent ones are among those that are read.
    @Test mutating func `items that could not be counted are said`() throws {
        var seen = look(after: 250, items: QueueItems.maximumItems - 2)
        seen.isCut = true
        log.add(seen)
        let missing = "more items of the main queue than were counted"
        #expect(try #require(log.victims(from: Self.start, until: Self.end)).missing == [missing])
        log.add(look(after: 500, items: 7))
        #expect(try #require(log.victims(from: Self.start, until: Self.end)).missing == [missing], "they were served")
    }

    /// A main queue without a run loop runs one item after the other.
    @Test mutating func `items that the turn has run are counted, each once`() throws {
        log.add(look(after: 250, items: 3))
        log.add(look(after: 750, items: 3))
        log.add(look(after: 1_000, items: 1, first: 0x20))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.mainQueueItems == 3 && victims.longestItemWaitMilliseconds == 1_000)
        #expect(victims.totalWaitMilliseconds == 2 * 500 + 1_000)
    }

    /// A drain after a source0 takes the list away first.
    @Test mutating func `a drained list waited until the look that saw it last`() throws {
        log.add(look(after: 250, items: 5))
        log.add(look(after: 500, items: 7))
        log.add(look(after: 1_000, items: 7))
        log.add(look(after: 1_100))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.mainQueueItems == 7 && victims.longestItemWaitMilliseconds == 750)
        #expect(victims.totalWaitMilliseconds == 5 * 750 + 2 * 500)
    }

    /// One look shows that something waited, and not for how long.
    @Test mutating func `what waited for an unknown time is no proof that nothing did`() throws {
        log.add(look(after: 250, items: 2))
        log.add(look(after: 300))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.mainQueueItems == 2 && victims.totalWaitMilliseconds == 0)
        #expect(victims.harmMilliseconds(omitsItems: false) == nil)
    }

    @Test func `the next look comes within three percent of the age`() {
        #expect(VictimLog.nextLook(after: Self.start + 320_000_000, from: Self.start) == Self.start + 330_000_000)
        #expect(VictimLog.nextLook(after: Self.start, from: Self.start) == Self.start + 1_000_000)
    }

    @Test mutating func operationsInFlightAreCountedToTheLastLook() throws {
        var seen = look(after: 1_000, timers: nil, items: nil)
        seen.operations = OperationsInFlight(count: 2, names: ["GET /feed"], age: 1_400_000_000)
        log.add(seen)
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.operations == 2 && victims.operationNames == ["GET /feed"])
        #expect(victims.totalWaitMilliseconds == 1_400 && victims.harmMilliseconds(omitsItems: true) == 1_400)
    }

    @Test mutating func anUnknownLayoutIsOneMissingNumber() throws {
        log.add(look(after: 250, timers: nil, items: 2, missing: ["the timers: another layout"]))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.timers == nil && victims.mainQueueItems == 2)
        #expect(victims.missing == ["the timers: another layout"])
    }

    @Test func `each unknown layout costs one number, with its reason`() async throws {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // On a thread without a run loop.
            Thread.detachNewThread {
                RunLoopLayout.learn()
                continuation.resume()
            }
        }
        QueueItems.learn()
        let loops = try WatchedLoop.runLoop(.main, label: "main").makeMonitors(threshold: 1, alarm: WatchdogAlarm())
        let source = try #require(loops.first).source
        defer { for loop in loops { loop.source.remove() } }
        func look(_ reader: VictimReader) -> VictimLog.Look { reader.look(at: Self.start, OperationsInFlight()) }
        let timers = "the timers: CoreFoundation has another layout, or the monitor was still preparing"
        let items = "the items of the main queue: libdispatch has another layout, or the monitor was still preparing"
        let withoutTimers = look(VictimReader(source, timers: { nil }))
        #expect(withoutTimers.timers == nil && withoutTimers.missing.contains(timers))
        #expect(!withoutTimers.missing.contains(items))
        let withoutItems = look(VictimReader(source, items: { nil }))
        #expect(withoutItems.items == nil && withoutItems.missing.contains(items))
        #expect(!withoutItems.missing.contains(timers))
        // The flags of a queue are no address of an item.
        let changing = look(
            VictimReader(source, items: { QueueItems(head: DispatchLayout.widthOffset, next: 16) }))
        #expect(changing.items == nil && changing.missing.contains(VictimLog.changingItems))
    }

    @Test mutating func `a look while the items change keeps the earlier ones`() throws {
        log.add(look(after: 250, items: 2))
        log.add(look(after: 500, items: nil, missing: [VictimLog.changingItems]))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.mainQueueItems == 2 && victims.missing == nil)
    }

    @Test mutating func `the timers of a gap between two runs are not known`() throws {
        let loops = try WatchedLoop.runLoop(.main, label: "main").makeMonitors(threshold: 1, alarm: WatchdogAlarm())
        let reader = VictimReader(try #require(loops.first).source)
        defer { for loop in loops { loop.source.remove() } }
        let look = reader.look(at: 10 * Self.second, OperationsInFlight(), inGap: true)
        #expect(look.timers == nil && look.missing.contains(VictimLog.outside))
        #expect(!reader.look(at: 10 * Self.second, OperationsInFlight()).missing.contains(VictimLog.outside))
        log.add(self.look(after: 250, timers: nil, items: 0, missing: [VictimLog.outside]))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.timers == nil && victims.missing == [VictimLog.outside])
        #expect(victims.harmMilliseconds(omitsItems: false) == nil)
    }

    @Test mutating func aLookWhileTheTimersChangeKeepsTheEarlierOnes() throws {
        log.add(look(after: 250, timers: [DueTimer(due: 10 * Self.second, interval: 0)]))
        log.add(look(after: 500, timers: nil, missing: [VictimLog.changing]))
        let victims = try #require(log.victims(from: Self.start, until: Self.end))
        #expect(victims.timers == 1 && victims.missing == nil)
    }

    @Test mutating func aLoopWithoutAnythingToAskHasNoVictims() {
        log.add(look(after: 250, timers: nil, items: nil))
        #expect(log.victims(from: Self.start, until: Self.end) == nil)
    }
}

/// The turns right after a stall that ended at 12 s; times are in milliseconds.
@Suite struct FollowedStallTests {
    private static let threshold: UInt64 = 250

    private func later(_ turns: [(began: UInt64, ended: UInt64?)], at now: UInt64 = 12_200) -> (
        count: Int, time: UInt64
    ) {
        let stall = FollowedStall(
            open: OpenRecord(record: .stub()), samples: [], end: 12_000_000_000, threshold: Self.threshold * 1_000_000)
        let later = stall.laterTurns(
            of: turns.map { turn in
                .init(began: turn.began * 1_000_000, ended: turn.ended.map { $0 * 1_000_000 }, waited: 0)
            }, at: now * 1_000_000)
        return (later.count, later.time / 1_000_000)
    }

    @Test func turnsWithoutAWaitAreCounted() {
        #expect(later([(12_000, 12_030), (12_030, 12_035)]) == (2, 35))
    }

    @Test func theStalledTurnIsNone() {
        #expect(later([(10_000, 12_000)]) == (0, 0))
    }

    @Test func aWaitEndsThem() {
        #expect(later([(12_001, 12_030)]) == (0, 0))
        #expect(later([(12_000, 12_030), (12_031, 12_040)]) == (1, 30))
    }

    @Test func aTurnThatGoesOnCountsUntilNow() {
        #expect(later([(12_000, nil)], at: 12_100) == (1, 100))
    }

    @Test func theyAreFollowedForAMoment() {
        func due(_ threshold: UInt64, besideTurn goesOn: Bool = true) -> UInt64 {
            FollowedStall(open: OpenRecord(record: .stub()), samples: [], end: 5, threshold: threshold)
                .due(besideTurn: goesOn)
        }
        #expect(due(20_000_000) == 20_000_005)
        #expect(due(60_000_000_000) == 50_000_005)
        #expect(due(250_000_000, besideTurn: false) == 5_000_005, "the watchdog may look between two turns")
        #expect(due(1_000_000, besideTurn: false) == 1_000_005)
    }
}

/// Times are in milliseconds.
@Suite struct TimerDelaysTests {
    private let delays = TimerDelays()

    private func look(at now: UInt64, _ due: UInt64...) {
        delays.add(due.map { DueTimer(due: $0 * 1_000_000, interval: 0) }, at: now * 1_000_000)
    }

    @Test func aTimerIsCountedOnce() {
        look(at: 1_000, 900)
        look(at: 1_500, 901)
        #expect(delays.count == 1 && delays.longest == 600_000_000 - 1_000_000)
    }

    @Test func laterDatesAreOtherTimers() {
        look(at: 1_000, 900, 990)
        look(at: 1_500, 900, 990, 1_400)
        #expect(delays.count == 3 && delays.longest == 600_000_000)
        look(at: 2_000, 1_900)
        #expect(delays.count == 4 && delays.longest == 600_000_000)
    }

    /// It is counted by a later look, if it is late then.
    @Test func aTimerThatIsJustDueIsNotLate() {
        delays.add([DueTimer(due: 1_000_000_001, interval: 0)], at: 1_001_000_000)
        #expect(delays.count == 0 && delays.longest == 0)
        delays.add([DueTimer(due: 1_000_000_001, interval: 0)], at: 1_001_000_001)
        #expect(delays.count == 1 && delays.longest == 1_000_000)
    }

    @Test func nothingIsLateWithoutTimers() {
        look(at: 1_000)
        look(at: 1_000, 2_000)
        #expect(delays.count == 0 && delays.longest == 0)
    }
}
