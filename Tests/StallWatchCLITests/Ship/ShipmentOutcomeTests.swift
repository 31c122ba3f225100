import StallReports
import Testing

@testable import StallWatchCLI

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
