import LinuxSupport
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct ShipQueueTests {
    @Test func eachReportWaitsOnce() {
        var queue = ShipQueue()
        queue.add(["a", "b", "c"]) { $0 == "b" }
        queue.add(["a", "c", "d"]) { _ in false }
        #expect(queue.count == 3)
        var order: [String] = []
        while let name = queue.next {
            order.append(name)
            queue.removeNext()
        }
        #expect(order == ["a", "c", "d"])
        // It may come again: an ongoing stall that has ended.
        queue.add(["a"]) { _ in false }
        #expect(queue.next == "a")
    }

    @Test func orderIsKeptOverManyReports() {
        var queue = ShipQueue()
        var taken: [String] = []
        for round in 0..<50 {
            queue.add((0..<20).map { "\(round * 20 + $0)" }) { _ in false }
            for _ in 0..<15 {
                if let name = queue.next { taken.append(name) }
                queue.removeNext()
            }
        }
        while let name = queue.next {
            taken.append(name)
            queue.removeNext()
        }
        #expect(taken == (0..<1_000).map(String.init))
    }

    @Test func theBatchShrinksToOneAndGrowsAgain() {
        var queue = ShipQueue()
        #expect(queue.limit == 256)
        queue.shrink(from: 100)
        #expect(queue.limit == 50)
        for _ in 0..<10 { queue.shrink(from: queue.limit) }
        #expect(queue.limit == 1)
        for _ in 0..<10 { queue.grow() }
        #expect(queue.limit == 256)
    }
}

@Suite struct ShipCheckpointTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test func whatIsDoneSurvivesARestart() throws {
        let folder = scratch.path("state")
        do {
            let checkpoint = try ShipCheckpoint(folder: folder)
            #expect(checkpoint.done.isEmpty)
            #expect(checkpoint.add(["a", "b"]) == nil)
            #expect(checkpoint.add(["c"]) == nil)
        }
        #expect(try ShipCheckpoint(folder: folder).done == ["a", "b", "c"])
    }

    @Test func aLineThatBreaksOffCountsForNothing() throws {
        try scratch.write("state/done", "stall-1.json\nstall-2.js")
        do {
            let checkpoint = try ShipCheckpoint(folder: scratch.path("state"))
            #expect(checkpoint.done == ["stall-1.json"])
            #expect(checkpoint.add(["stall-3.json"]) == nil)
        }
        #expect(
            try ShipCheckpoint(folder: scratch.path("state")).done == ["stall-1.json", "stall-2.js", "stall-3.json"])
    }

    @Test func onlyOneProcessAtATime() throws {
        let first = try ShipCheckpoint(folder: scratch.path("state"))
        let error = #expect(throws: CommandFailure.self) { try ShipCheckpoint(folder: scratch.path("state")) }
        #expect(error?.sentence.contains("already follows") == true)
        withExtendedLifetime(first) {}
    }

    @Test func namesOfFilesThatAreGoneAreDropped() throws {
        let checkpoint = try ShipCheckpoint(folder: scratch.path("state"))
        #expect(checkpoint.add((0..<10_500).map(String.init)) == nil)
        checkpoint.compact { Int($0).map { $0 < 100 } ?? false }
        #expect(checkpoint.done.count == 100)
        #expect(checkpoint.add(["new"]) == nil)
        let size = FileStatus(path: scratch.path("state/done"))?.size
        #expect(size == 290 + 4)
    }

    @Test func anUnwritableFolderIsNamed() throws {
        let file = try scratch.write("file", "")
        let error = #expect(throws: CommandFailure.self) { try ShipCheckpoint(folder: file + "/state") }
        #expect(error?.sentence.contains("--state") == true)
    }
}

@Suite struct SetAsideFolderTests {
    @Test func aReportIsKeptWithTheReason() throws {
        let scratch = try TemporaryDirectory()
        let report = ReportFixture(number: 1)
        try scratch.write([report], in: "stalls/")
        var folder = SetAsideFolder(path: scratch.path("rejected"))
        #expect(folder.add(report.fileName, from: scratch.path("stalls"), reason: "HTTP status 400") == nil)
        #expect(scratch.names(in: "rejected") == [report.fileName, report.fileName + ".reason"])
        let reason = AtomicFile.read(scratch.path("rejected/\(report.fileName).reason"), limit: 1_000) ?? []
        #expect(String(decoding: reason, as: UTF8.self).hasSuffix("Z HTTP status 400\n"))
        // Again, as after a crash.
        #expect(folder.add(report.fileName, from: scratch.path("stalls"), reason: "HTTP status 400") == nil)
        #expect(folder.add("stall-gone.json", from: scratch.path("stalls"), reason: "x") != nil)
    }
}

extension TemporaryDirectory {
    /// The sorted names in a folder of the directory.
    fileprivate func names(in folder: String) -> [String] {
        (directoryEntries(path(folder)) ?? []).map(\.name).filter { !$0.hasPrefix(".") }.sorted()
    }
}

@Suite struct ShipmentOutcomeTests {
    private let now = Timestamp(microsecondsSince1970: 0)

    private func outcome(_ answer: OTLPAnswer, reports: Int = 2, isGivenUp: Bool = false) -> ShipmentOutcome {
        ShipmentOutcome(answer, reports: reports, isGivenUp: isGivenUp, now: now)
    }

    @Test(arguments: [200, 202, 204]) func successIsDelivered(status: Int) {
        #expect(outcome(OTLPAnswer(status: status)) == .delivered)
    }

    @Test(arguments: [408, 425, 429, 500, 501, 502, 503, 504, 599]) func theseAreTriedAgainForEver(status: Int) {
        let answer = OTLPAnswer(status: status, retryAfter: "7")
        let expected = ShipmentOutcome.retry(reason: "HTTP status \(status)", after: .seconds(7), isRefusal: false)
        #expect(outcome(answer) == expected)
        #expect(outcome(answer, reports: 1, isGivenUp: true) == expected)
    }

    @Test func noAnswerIsTriedAgain() {
        #expect(
            outcome(OTLPAnswer(status: 0, error: "Connection refused"), isGivenUp: true)
                == .retry(reason: "Connection refused", after: nil, isRefusal: false))
    }

    @Test(arguments: [400, 413, 414, 422, 431]) func aRequestThatIsNotTakenIsSplit(status: Int) {
        let reason = "HTTP status \(status)"
        #expect(outcome(OTLPAnswer(status: status)) == .split(reason: reason))
        #expect(outcome(OTLPAnswer(status: status), reports: 1) == .setAside(reason: reason))
    }

    @Test(arguments: [301, 401, 403, 404, 405, 407, 415]) func aRefusalIsTriedAgainForATime(status: Int) {
        let reason = "HTTP status \(status)"
        #expect(outcome(OTLPAnswer(status: status)) == .retry(reason: reason, after: nil, isRefusal: true))
        #expect(outcome(OTLPAnswer(status: status), isGivenUp: true) == .setAside(reason: reason))
    }

    @Test func aPageIsARefusal() {
        let page = OTLPAnswer(status: 200, contentType: "text/html", body: Array("<html>Hello</html>".utf8))
        let reason = "HTTP status 200, <html>Hello</html>: this is not an answer of OTLP"
        #expect(outcome(page) == .retry(reason: reason, after: nil, isRefusal: true))
        #expect(outcome(page, isGivenUp: true) == .setAside(reason: reason))
    }

    @Test func aPartialSuccessIsNotSentAgain() {
        var writer = ProtobufWriter()
        writer.message(1) {
            $0.number(1, 1)
            $0.string(2, "too old")
        }
        let answer = OTLPAnswer(status: 200, contentType: "application/x-protobuf", body: writer.bytes)
        #expect(outcome(answer) == .setAside(reason: "the collector rejected 1 of 2: too old"))
    }
}

@Suite struct RetryAfterTests {
    private let now = Timestamp(microsecondsSince1970: 1_795_248_000_000_000)

    private func wait(_ field: String, date: String = "") -> Duration? { RetryAfter.wait(field, date: date, now: now) }

    @Test func seconds() {
        #expect(wait("120") == .seconds(120))
        #expect(wait(" 0 ") == .zero)
        #expect(wait("99999999999999999999999") == RetryAfter.longest)
        #expect(wait("86400") == RetryAfter.longest)
    }

    @Test(arguments: ["", "-5", "soon", "1.5", "Sat, 31 Nov 2026 08:00:00 GMT", "Sat, 21 Nov 2026 08:00:00 CET"])
    func anythingElseIsNone(field: String) {
        #expect(wait(field) == nil)
    }

    @Test func aDate() {
        #expect(wait("Sat, 21 Nov 2026 08:00:30 GMT") == .seconds(30))
        #expect(wait("Sat, 21 Nov 2026 07:59:00 GMT") == .zero)
        #expect(wait("Sun, 21 Nov 2027 08:00:00 GMT") == RetryAfter.longest)
    }

    /// A clock of this machine that is wrong by years changes nothing: both times are the collector's.
    @Test func aDateCountsFromTheAnswersOwnDate() {
        #expect(wait("Sun, 06 Nov 1994 08:49:52 GMT", date: "Sun, 06 Nov 1994 08:49:37 GMT") == .seconds(15))
    }
}

@Suite struct BackoffTests {
    @Test func waitsGrowToALimit() {
        var backoff = Backoff()
        let waits = (0..<10).map { _ in backoff.next(random: 1) }
        #expect(waits == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60].map { Duration.seconds($0) })
        backoff.reset()
        #expect(backoff.next(random: 0) == .milliseconds(250))
    }

    @Test func theCollectorsWaitIsNeverCutShort() {
        var backoff = Backoff()
        #expect(backoff.next(random: 0, asked: .seconds(100)) == .seconds(100))
        #expect(backoff.next(random: 1, asked: .seconds(100)) == .seconds(110))
        #expect(backoff.next(random: 1, asked: .zero) == .seconds(2))
    }
}
