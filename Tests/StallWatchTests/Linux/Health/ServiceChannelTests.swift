import Testing

@testable import StallReports
@testable import StallWatch

/// The messages to a service manager, and when they are sent; times in milliseconds.
@Suite struct ServiceFeedTests {
    private static let millisecond: UInt64 = 1_000_000

    private struct Look: Equatable {
        var message: String?
        var next: UInt64

        init(_ message: String?, _ next: UInt64) {
            self.message = message
            self.next = next
        }
    }

    private struct Manager {
        var feed: ServiceFeed

        mutating func look(
            _ record: HealthRecord?, at time: UInt64, isTaken: Bool = true
        ) -> Look {
            let now = time * millisecond
            let (message, after) = feed.next(record, at: now)
            if isTaken, message != nil { feed = after }
            return Look(message, (feed.nextCheck(at: now) - now) / millisecond)
        }
    }

    private func manager(period: UInt64? = 500) -> Manager {
        Manager(feed: ServiceFeed(period: period.map { $0 * Self.millisecond }, interval: 1_000 * Self.millisecond))
    }

    private func record(_ state: HealthState, _ stall: HealthRecord.Stall? = nil) -> HealthRecord {
        let time = Timestamp(microsecondsSince1970: 0)
        return HealthRecord(
            state: state, checkedAt: time, checkedAtMonotonicMilliseconds: 0, progressedAt: time,
            process: .init(pid: 1), loops: [.init(label: "main", state: .running, since: time)], stall: stall)
    }

    private var stalled: HealthRecord {
        record(.stalled, .init(sentence: "main stalled", isOngoing: true, function: "f()", report: "a"))
    }

    @Test func `a service is ready when all loops make progress`() {
        var manager = manager()
        #expect(manager.look(record(.starting), at: 0).message == "STATUS=a loop has not begun the first turn")
        #expect(manager.look(record(.starting), at: 100) == Look(nil, 100))
        #expect(manager.look(stalled, at: 200).message == "STATUS=main stalled")
        let ready = manager.look(record(.ok), at: 300)
        #expect(ready.message == "READY=1\nWATCHDOG=1\nSTATUS=1 loop makes progress")
        #expect(ready.next == 500)
    }

    @Test func `it is fed every half of the limit, and never more often`() {
        var manager = manager()
        _ = manager.look(record(.ok), at: 0)
        var fed: [UInt64] = []
        for time in stride(from: UInt64(10), through: 5_000, by: 10)
        where manager.look(record(.ok), at: time).message != nil {
            fed.append(time)
        }
        #expect(fed == Array(stride(from: 500, through: 5_000, by: 500)))
    }

    @Test func `a late look does not change the beat`() {
        var manager = manager()
        _ = manager.look(record(.ok), at: 0)
        #expect(manager.look(record(.ok), at: 530) == Look("WATCHDOG=1", 470))
        #expect(manager.look(record(.ok), at: 1_000) == Look("WATCHDOG=1", 500))
    }

    @Test func `a stalled service is not fed, and at once when it goes on`() {
        var manager = manager()
        _ = manager.look(record(.ok), at: 0)
        #expect(manager.look(stalled, at: 300).message == "STATUS=main stalled")
        for time in stride(from: UInt64(500), to: 60_000, by: 50) {
            #expect(manager.look(stalled, at: time) == Look(nil, 50))
        }
        let over = HealthRecord.Stall(sentence: "main stalled for 60000 ms in f()", isOngoing: false, report: "a")
        #expect(
            manager.look(record(.ok, over), at: 60_000)
                == Look("WATCHDOG=1\nSTATUS=1 loop makes progress; last stall: main stalled for 60000 ms in f()", 500))
    }

    @Test(arguments: [HealthState.starting, .held, .stopped, .init(rawValue: "dreaming")])
    func `no other state feeds`(state: HealthState) {
        var manager = manager()
        _ = manager.look(record(.ok), at: 0)
        #expect(manager.look(record(state), at: 1_000).message?.contains("WATCHDOG") == false)
    }

    @Test func `without an answer of the watchdog nothing is sent`() {
        var manager = manager()
        #expect(manager.look(nil, at: 0) == Look(nil, 100))
        _ = manager.look(record(.ok), at: 100)
        #expect(manager.look(nil, at: 700) == Look(nil, 50))
    }

    @Test func `a message that was not taken is sent again`() {
        var manager = manager()
        #expect(manager.look(record(.ok), at: 0, isTaken: false).message?.hasPrefix("READY=1\nWATCHDOG=1\n") == true)
        #expect(manager.look(record(.ok), at: 100).message?.hasPrefix("READY=1\nWATCHDOG=1\n") == true)
        #expect(manager.look(record(.ok), at: 600, isTaken: false) == Look("WATCHDOG=1", 50))
        #expect(manager.look(record(.ok), at: 650) == Look("WATCHDOG=1", 450))
    }

    @Test func `a manager that expects no feed gets none`() {
        var manager = manager(period: nil)
        #expect(manager.look(record(.ok), at: 0) == Look("READY=1\nSTATUS=1 loop makes progress", 1_000))
        #expect(manager.look(record(.ok), at: 100_000) == Look(nil, 1_000))
    }

    @Test func `a status follows the stall, and not its duration`() {
        var manager = manager()
        _ = manager.look(record(.ok), at: 0)
        func stall(_ sentence: String, _ function: String?, _ report: String?) -> HealthRecord {
            record(.stalled, .init(sentence: sentence, isOngoing: true, function: function, report: report))
        }
        #expect(manager.look(stall("after 100 ms", nil, "a"), at: 100).message == "STATUS=after 100 ms")
        #expect(manager.look(stall("after 200 ms", nil, "a"), at: 200).message == nil)
        #expect(manager.look(stall("in f() after 300 ms", "f()", "a"), at: 300).message == "STATUS=in f() after 300 ms")
        #expect(manager.look(stall("in f() after 400 ms", "f()", "a"), at: 400).message == nil)
        #expect(manager.look(stall("in f() after 100 ms", "f()", "b"), at: 500).message == "STATUS=in f() after 100 ms")
    }
}
