import StallReports
import Testing

@testable import StallWatch

/// Looks at what waits for a loop that stalls from 10 s to 12 s; times are in nanoseconds.
@Suite struct VictimLogTests {
    private static let second: UInt64 = 1_000_000_000
    private static let end = 12 * second
    private var log = VictimLog()

    private func look(
        after milliseconds: UInt64, timers: [DueTimer]? = [], items: Int? = 0, missing: [String] = []
    ) -> VictimLog.Look {
        .init(
            time: 10 * Self.second + milliseconds * 1_000_000, timers: timers, items: items, missing: missing)
    }

    @Test func withoutALookNothingIsKnown() {
        #expect(log.victims(until: Self.end) == nil)
    }

    @Test mutating func nothingWaitsIfNothingIsDue() throws {
        log.add(look(after: 250))
        let victims = try #require(log.victims(until: Self.end))
        #expect(victims.timers == 0 && victims.mainQueueItems == 0 && victims.operations == nil)
        #expect(victims.longestTimerDelayMilliseconds == nil && victims.longestItemWaitMilliseconds == nil)
        #expect(victims.totalWaitMilliseconds == 0 && victims.harmMilliseconds == 0)
    }

    @Test mutating func timersThatAreDueWaitUntilTheEnd() throws {
        let first = DueTimer(due: 10 * Self.second + 100_000_000, interval: 0)
        log.add(look(after: 250, timers: [first]))
        let second = DueTimer(due: 11 * Self.second, interval: 300_000_000)
        log.add(look(after: 1_500, timers: [first, second]))
        let victims = try #require(log.victims(until: Self.end))
        #expect(victims.timers == 2 && victims.longestTimerDelayMilliseconds == 1_900)
        #expect(victims.skippedFirings == 3 && victims.totalWaitMilliseconds == 2_900)
    }

    @Test mutating func aTimerThatIsRemovedIsNoVictim() throws {
        log.add(look(after: 250, timers: [DueTimer(due: 10 * Self.second, interval: 0)]))
        log.add(look(after: 500))
        #expect(try #require(log.victims(until: Self.end)).timers == 0)
    }

    @Test mutating func anItemIsAsOldAsTheLookThatSawItFirst() throws {
        log.add(look(after: 250, items: 3))
        log.add(look(after: 1_000, items: 5))
        let victims = try #require(log.victims(until: Self.end))
        #expect(victims.mainQueueItems == 5 && victims.longestItemWaitMilliseconds == 1_750)
        #expect(victims.totalWaitMilliseconds == 3 * 1_750 + 2 * 1_000)
    }

    /// A nested run has served the items that were there before.
    @Test mutating func itemsThatWereServedDoNotCount() throws {
        log.add(look(after: 250, items: 3))
        log.add(look(after: 1_000, items: 1))
        let victims = try #require(log.victims(until: Self.end))
        #expect(victims.mainQueueItems == 1 && victims.longestItemWaitMilliseconds == 1_000)
    }

    @Test mutating func operationsAreInFlightUntilTheEnd() throws {
        var seen = look(after: 1_000, timers: nil, items: nil)
        seen.operations = OperationsInFlight(count: 2, names: ["GET /feed"], age: 1_400_000_000)
        log.add(seen)
        let victims = try #require(log.victims(until: Self.end))
        #expect(victims.operations == 2 && victims.operationNames == ["GET /feed"])
        #expect(victims.totalWaitMilliseconds == 1_400 + 2 * 1_000)
    }

    @Test mutating func anUnknownLayoutIsOneMissingNumber() throws {
        log.add(look(after: 250, timers: nil, items: 2, missing: ["the timers: another layout"]))
        let victims = try #require(log.victims(until: Self.end))
        #expect(victims.timers == nil && victims.mainQueueItems == 2)
        #expect(victims.missing == ["the timers: another layout"])
    }

    @Test mutating func aLookWhileTheTimersChangeKeepsTheEarlierOnes() throws {
        log.add(look(after: 250, timers: [DueTimer(due: 10 * Self.second, interval: 0)]))
        log.add(look(after: 500, timers: nil, missing: [VictimLog.changing]))
        let victims = try #require(log.victims(until: Self.end))
        #expect(victims.timers == 1 && victims.missing == nil)
    }

    @Test mutating func aLoopWithoutAnythingToAskHasNoVictims() {
        log.add(look(after: 250, timers: nil, items: nil))
        #expect(log.victims(until: Self.end) == nil)
    }
}
