import Glibc
import LinuxSupport
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

/// Shipping to a collector that is a closure, on a clock that does not run by itself.
@Suite struct ShipperTests {
    private final class World {
        let scratch: TemporaryDirectory
        var now: UInt64 = 1_000_000_000
        /// The number of waits after which a signal comes.
        var waitsUntilSignal = Int.max
        /// The time of each request, with the numbers of its reports.
        var requests: [(time: UInt64, reports: [Int])] = []
        var answers: [OTLPAnswer] = []
        var answer: (_ reports: [Int]) -> OTLPAnswer = { _ in OTLPAnswer(status: 200) }
        var beforeWait: (Int) throws -> Void = { _ in }
        /// The number of requests with metrics, and the answer to each.
        var metrics = 0
        var metricsAnswer = OTLPAnswer(status: 200)
        var log: [String] = []
        private var waits = 0

        init() throws { scratch = try TemporaryDirectory() }

        func run(
            _ folders: [String] = ["stalls"], statistics: String? = nil, isOnce: Bool = true,
            refusal: Duration = .seconds(900)
        ) throws -> Shipper {
            let directories = try folders.map {
                try ShippedDirectory(path: scratch.path($0), state: nil, common: OTLPAttributes()) {
                    self.log.append($0)
                }
            }
            let clock = ShipClock(
                now: { self.now }, wallTime: { Timestamp(microsecondsSince1970: 0) },
                isStopRequested: { self.waits >= self.waitsUntilSignal }
            ) { deadline in
                self.waits += 1
                self.now = max(self.now, deadline)
                do { try self.beforeWait(self.waits) } catch { Issue.record(error) }
            }
            var limits = Shipper.Limits()
            limits.isOnce = isOnce
            limits.refusal = refusal
            let files = statistics.map { path in
                ShippedStatistics(path: path, common: OTLPAttributes()) { self.log.append($0) }
            }
            let shipper = Shipper(
                directories, statistics: files.map { [$0] } ?? [], limits: limits, clock: clock
            ) {
                self.log.append($0)
            } post: { signal, message, _ in
                guard signal == .logs else {
                    self.metrics += 1
                    return self.metricsAnswer
                }
                let reports = Self.numbers(message)
                self.requests.append((self.now, reports))
                return self.answers.isEmpty ? self.answer(reports) : self.answers.removeFirst()
            }
            shipper.run()
            return shipper
        }

        /// The last digits of the ids of a request's records.
        private static func numbers(_ message: [UInt8]) -> [Int] {
            let records = messages(message, 1).flatMap { messages($0, 2) }.flatMap { messages($0, 2) }
            return records.compactMap { record in
                for pair in messages(record, 6) where messages(pair, 1).first == Array("log.record.uid".utf8) {
                    guard let value = messages(pair, 2).first, let id = messages(value, 1).first else { return nil }
                    return Int(String(decoding: id.suffix(12), as: UTF8.self))
                }
                return nil
            }
        }

        /// Writes reports, one a second.
        func write(_ numbers: some Sequence<Int>, in folder: String = "stalls", state: String = "ended") throws {
            for number in numbers {
                let seconds = number < 10 ? "0\(number)" : "\(number)"
                try scratch.write(
                    [ReportFixture(number: number, state: state, startedAt: "2026-11-21T08:00:\(seconds).000000Z")],
                    in: folder + "/")
            }
        }

        func aside() -> Int {
            (directoryEntries(scratch.path("stalls/.stallwatch-ship/rejected")) ?? []).count {
                $0.name.hasSuffix(".json")
            }
        }
    }

    @Test func reportsAreSentOnceInOrder() throws {
        let world = try World()
        try world.write([5, 3, 9, 1])
        #expect(try world.run().totals == ShipTotals(sent: 4))
        #expect(world.requests.map(\.reports) == [[1, 3, 5, 9]])
        // A restart sends only what is new.
        try world.write([2])
        #expect(try world.run().totals == ShipTotals(sent: 1))
        #expect(world.requests.last?.reports == [2])
    }

    @Test func directoriesTakeTurns() throws {
        let world = try World()
        try world.write([1, 2], in: "a")
        try world.write([3], in: "b")
        #expect(try world.run(["a", "b"]).totals.sent == 3)
        #expect(world.requests.map(\.reports) == [[1, 2], [3]])
    }

    @Test func anOngoingStallIsSentWhenItHasEnded() throws {
        let world = try World()
        try world.write([1], state: "ongoing")
        try world.write([2])
        world.waitsUntilSignal = 4
        world.beforeWait = { [unowned world] wait in
            if wait == 2 { try world.write([1]) }
        }
        #expect(try world.run(isOnce: false).totals.sent == 2)
        #expect(world.requests.map(\.reports) == [[2], [1]])
    }

    @Test func aTryThatFailsIsMadeAgain() throws {
        let world = try World()
        try world.write([1, 2])
        world.answers = [
            OTLPAnswer(status: 0, error: "Connection refused"), OTLPAnswer(status: 503),
            OTLPAnswer(status: 429, retryAfter: "30"),
        ]
        #expect(try world.run().totals == ShipTotals(sent: 2))
        #expect(world.requests.map(\.reports) == [[1, 2], [1, 2], [1, 2], [1, 2]])
        let waits = zip(world.requests, world.requests.dropFirst()).map { $1.time - $0.time }
        #expect(waits[0] >= 250_000_000 && waits[1] >= 500_000_000)
        #expect(waits[2] >= 30_000_000_000 && waits[2] < 34_000_000_000)
        #expect(
            world.log == [
                "The collector does not take reports: Connection refused. Trying again.",
                "The collector takes reports again.",
            ])
    }

    @Test func oneRunGivesUpAfterFiveFailures() throws {
        let world = try World()
        try world.write([1])
        world.answer = { _ in OTLPAnswer(status: 503) }
        let shipper = try world.run()
        #expect(shipper.waiting == 1)
        #expect(world.requests.count == 5)
    }

    @Test func aReportThatIsNotTakenIsFoundAndKeptAside() throws {
        let world = try World()
        try world.write(0..<20)
        world.answer = { OTLPAnswer(status: $0.contains(13) ? 400 : 200) }
        #expect(try world.run().totals == ShipTotals(sent: 19, setAside: 1))
        #expect(world.aside() == 1)
        // All others arrived, in order.
        #expect(world.requests.filter { !$0.reports.contains(13) }.flatMap(\.reports) == (0..<20).filter { $0 != 13 })
        #expect(world.requests.count < 16)
        // It is not tried again.
        #expect(try world.run().totals == ShipTotals())
    }

    @Test func aRefusingCollectorIsAskedForATime() throws {
        let world = try World()
        try world.write([1, 2, 3])
        world.answer = { [unowned world] _ in OTLPAnswer(status: world.requests.count < 40 ? 401 : 200) }
        world.waitsUntilSignal = 2_000
        #expect(try world.run(isOnce: false).totals.setAside == 3)
        let times = world.requests.map(\.time)
        #expect(times[times.count - 1] - times[0] >= 900_000_000_000)
        #expect(times[times.count - 1] - times[0] < 1_000_000_000_000)
        #expect(world.aside() == 3)
    }

    @Test func oneRunEndsWhenAllIsKeptAside() throws {
        let world = try World()
        try world.write([1, 2])
        world.answer = { _ in OTLPAnswer(status: 403) }
        let shipper = try world.run(refusal: .seconds(1))
        #expect(shipper.totals == ShipTotals(setAside: 2))
        #expect(!shipper.isFailing)
    }

    @Test func aCollectorWithoutMetricsTakesReports() throws {
        let world = try World()
        try world.write([1])
        let path = try world.scratch.write("statistics.json", #"{ "suppressed": {}, "loops": [] }"#)
        world.metricsAnswer = OTLPAnswer(status: 404)
        #expect(try world.run(statistics: path).totals.sent == 1)
        #expect(world.metrics == 1)
        #expect(world.log == ["The collector does not take the statistics \(path): HTTP status 404"])
    }

    @Test func statisticsAreTriedAgain() throws {
        let world = try World()
        try world.write([])
        try world.scratch.write("stalls/other", "")
        let path = try world.scratch.write("statistics.json", #"{ "suppressed": {}, "loops": [] }"#)
        world.metricsAnswer = OTLPAnswer(status: 503)
        #expect(try world.run(statistics: path).isFailing)
        #expect(world.metrics == 5)
    }

    @Test func anUnreadableReportIsKeptAside() throws {
        let world = try World()
        try world.write([1])
        try world.scratch.write("stalls/stall-0.json", "{")
        #expect(try world.run().totals == ShipTotals(sent: 1, setAside: 1))
        #expect(world.aside() == 1)
    }

    @Test func aSignalFlushesWhatIsThere() throws {
        let world = try World()
        try world.write([1])
        world.waitsUntilSignal = 3
        world.beforeWait = { [unowned world] wait in
            if wait == 3 { try world.write([2]) }
        }
        let shipper = try world.run(isOnce: false)
        #expect(world.requests.map(\.reports) == [[1], [2]])
        #expect(shipper.waiting == 0)
    }

    @Test func `the flush does not wait for a collector that is away`() throws {
        let world = try World()
        try world.write([1])
        world.answer = { _ in OTLPAnswer(status: 0, error: "Connection refused") }
        world.waitsUntilSignal = 1
        let shipper = try world.run(isOnce: false)
        // One try, and another one for the signal.
        #expect(world.requests.count == 2)
        #expect(shipper.waiting == 1)
    }

    @Test func aDirectoryMayGoAndComeBack() throws {
        let world = try World()
        try world.write([1])
        world.waitsUntilSignal = 8
        world.beforeWait = { [unowned world] wait in
            let path = world.scratch.path("stalls")
            if wait == 2 { rename(path, path + "-away") }
            if wait == 4 { rename(path + "-away", path) }
            if wait == 5 { try world.write([2]) }
        }
        #expect(try world.run(isOnce: false).totals.sent == 2)
        #expect(world.requests.map(\.reports) == [[1], [2]])
        #expect(world.log.map { $0.contains("gone") } == [true, false])
    }
}
