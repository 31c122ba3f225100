import Foundation
import TestSupport
import Testing

@testable import StallReports

@Suite struct MonitorStatisticsTests {
    private static func statistics() -> MonitorStatistics {
        var loop = LoopStatistics(label: "main")
        loop.watchedTime = .seconds(7_200)
        loop.turns = 1_000
        loop.busyTime = .milliseconds(500_500)
        loop.currentTurn = .microseconds(12_500)
        loop.stalls = 4
        loop.missed = 1
        loop.stallTime = .seconds(9)
        loop.lastStall = Timestamp("2026-11-21T08:00:00.500000Z")
        loop.earlyStops = 1
        (loop.lateTimers, loop.longestTimerDelay) = (3, .milliseconds(2_140))
        loop.threshold = .milliseconds(250)
        loop.utilization = 0.25
        loop.latency = [
            LatencyBucket(upperBound: .nanoseconds(1_024), turns: 998),
            .init(upperBound: .nanoseconds(1 << 30), turns: 1),
            .init(upperBound: nil, turns: 1),
        ]
        var statistics = MonitorStatistics()
        statistics.stalls = 4
        statistics.missed = 1
        statistics.suppressed[.debugger] = 2
        statistics.reportsLost = 3
        statistics.lastWriteError = "the disk is full"
        statistics.loops = [loop]
        return statistics
    }

    @Test func `statistics are the same after a file`() throws {
        let statistics = Self.statistics()
        let decoded = try JSONDecoder().decode(MonitorStatistics.self, from: Data(statistics.jsonData()))
        #expect(decoded == statistics)
    }

    @Test func `the JSON has the units in its names and what is computed`() throws {
        let object = try JSONSerialization.jsonObject(with: Data(Self.statistics().jsonData())) as? [String: Any]
        let loop = try #require((object?["loops"] as? [[String: Any]])?.first)
        let numbers: [String: Double] = [
            "watchedSeconds": 7_200, "busySeconds": 500.5, "currentTurnMilliseconds": 12.5, "stallSeconds": 9,
            "thresholdMilliseconds": 250, "stallsPerHour": 2, "stalledShare": 0.00125, "meanMilliseconds": 500.5,
            "p50Milliseconds": 0.001_024, "lateTimers": 3, "longestTimerDelayMilliseconds": 2_140,
        ]
        for (name, number) in numbers { #expect(loop[name] as? Double == number, "\(name)") }
        #expect(loop["longestMilliseconds"] == nil, "it took over 4.8 hours")
    }

    @Test func `stalls of several loops with one label are no more than all of the time`() {
        var loop = LoopStatistics(label: "http")
        (loop.watchedTime, loop.stallTime) = (.seconds(10), .seconds(24))
        #expect(loop.stalledShare == 1)
    }

    @Test(arguments: [
        #""watchedSeconds": -1"#, #""watchedSeconds": 1e13"#, #""turns": 1"#, #""watchedSeconds": 1, "stalls": -1"#,
        #""watchedSeconds": 1, "latency": [{"belowMicroseconds": -1, "turns": 1}]"#,
        #""watchedSeconds": 1, "turns": 9007199254740992"#,
    ])
    func `a number out of range is refused`(field: String) {
        let json = #"{"suppressed": {}, "loops": [{"label": "main", \#(field)}]}"#
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(MonitorStatistics.self, from: Data(json.utf8)) }
    }

    @Test func `the order of the files does not change a sum`() {
        var other = Self.statistics()
        other.loops[0].lastStall = Timestamp("2026-11-21T07:00:00.000000Z")
        other.loops[0].threshold = .milliseconds(100)
        for both in [[Self.statistics(), other], [other, Self.statistics()]] {
            var sum = MonitorStatistics()
            for statistics in both { sum.add(statistics) }
            #expect(sum.loops.first?.lastStall == Timestamp("2026-11-21T08:00:00.500000Z"))
            #expect(sum.loops.first?.threshold == .milliseconds(250))
        }
    }

    @Test func `loops with the same label are added up`() throws {
        var sum = MonitorStatistics()
        sum.add(Self.statistics())
        sum.add(Self.statistics())
        let loop = try #require(sum.loops.first)
        #expect(sum.stalls == 8 && sum.suppressed[.debugger] == 4)
        #expect(loop.watchedTime == .seconds(14_400) && loop.stallsPerHour == 2)
        #expect(loop.latency.map(\.turns) == [1_996, 2, 2])
        #expect(loop.lateTimers == 6 && loop.longestTimerDelay == .milliseconds(2_140))
        #expect(loop.turnDuration(quantile: 0.5) == .nanoseconds(1_024))
    }
}
