import Glibc
import LinuxSupport
import StallReports
import TextOutput

/// Sends the finished reports of directories to a collector until it is asked to end.
///
/// One request at a time, from the directories in turn. A report is done when the collector has answered, so each one
/// arrives at least once. Waits use the monotonic clock only.
final class Shipper {
    struct Limits: Sendable {
        /// How long a collector that refuses everything is asked again before reports are kept aside.
        var refusal: Duration = .seconds(900)
        /// How long the remaining reports are sent after a signal.
        var flush: Duration = .seconds(10)
        /// Ends when nothing waits.
        var isOnce = false
        /// Failed tries in a row after which a run that ends by itself gives up.
        static let onceFailures = 5
    }

    /// The time between two polls, in nanoseconds; an idle poll costs one stat(2) a directory.
    private static let period: UInt64 = 500_000_000

    /// Posts a message of a kind of data, and waits for the answer.
    typealias Post = (_ signal: OTLPSettings.Signal, _ message: [UInt8], _ timeoutMilliseconds: Int) -> OTLPAnswer

    private let directories: [ShippedDirectory]
    private let statistics: [ShippedStatistics]
    private let post: Post
    private let clock: ShipClock
    private let limits: Limits
    private let log: (String) -> Void
    private var backoff = Backoff()
    private var retryAt: UInt64 = 0
    private var refusedSince: UInt64?
    /// The end of the flush, once a signal has come.
    private var deadline: UInt64?

    init(
        _ directories: [ShippedDirectory], statistics: [ShippedStatistics] = [], limits: Limits, clock: ShipClock,
        log: @escaping (String) -> Void, post: @escaping Post
    ) {
        self.statistics = statistics
        self.directories = directories
        self.limits = limits
        self.clock = clock
        self.log = log
        self.post = post
    }

    var totals: ShipTotals { directories.reduce(ShipTotals()) { $0 + $1.totals } }
    var isFailing: Bool { backoff.failures > 0 }
    var waiting: Int { directories.reduce(0) { $0 + $1.waiting } }

    func run() {
        while true {
            // Before the last poll, which finds the reports that programs wrote until the signal.
            let isStopping = clock.isStopRequested()
            if isStopping { deadline = clock.now() + nanoseconds(limits.flush) }
            for directory in directories { directory.poll(now: clock.now()) }
            if isStopping || clock.now() >= retryAt { sendAll() }
            if isStopping { return }
            if limits.isOnce, (waiting == 0 && backoff.failures == 0) || backoff.failures >= Limits.onceFailures {
                return
            }
            clock.wait(max(min(clock.now() + Self.period, retryAt), clock.now() + Self.period / 10))
        }
    }

    /// Sends what waits, until a try fails or the time is over.
    private func sendAll() {
        var hasMore = true
        while hasMore {
            hasMore = false
            for directory in directories {
                if deadline == nil, clock.isStopRequested() { return }
                guard let request = directory.nextRequest() else { continue }
                guard let timeout = remainingMilliseconds() else { return }
                let answer = post(.logs, request.bytes(), timeout)
                let outcome = ShipmentOutcome(
                    answer, reports: request.count, isGivenUp: isGivenUp(), now: clock.wallTime())
                directory.apply(outcome, count: request.count)
                guard note(outcome) else { return }
                hasMore = true
            }
        }
        sendStatistics()
    }

    private func sendStatistics() {
        for file in statistics {
            guard let message = file.nextRequest() else { continue }
            guard let timeout = remainingMilliseconds() else { return }
            // A collector that takes no metrics must not hold up reports.
            let outcome = ShipmentOutcome(
                post(.metrics, message, timeout), reports: 1, isGivenUp: true, now: clock.wallTime())
            file.apply(outcome)
            guard note(outcome) else { return }
        }
    }

    /// Updates the state of the collector; returns whether to go on at once.
    private func note(_ outcome: ShipmentOutcome) -> Bool {
        switch outcome {
        case .retry(let reason, let asked, let isRefusal):
            if backoff.failures == 0 { log("The collector does not take reports: \(reason). Trying again.") }
            retryAt = clock.now() + nanoseconds(backoff.next(random: .random(in: 0...1), asked: asked))
            refusedSince = isRefusal ? refusedSince ?? clock.now() : nil
            return false
        case .delivered, .setAside:
            if outcome == .delivered, backoff.failures > 0 { log("The collector takes reports again.") }
            backoff.reset()
            refusedSince = nil
        case .split: break
        }
        return true
    }

    private func isGivenUp() -> Bool {
        refusedSince.map { clock.now() - $0 >= nanoseconds(limits.refusal) } ?? false
    }

    /// The time that a request may take; `nil` when there is none left.
    private func remainingMilliseconds() -> Int? {
        guard let deadline else { return .max }
        let now = clock.now()
        return now < deadline ? Int((deadline - now) / 1_000_000) + 1 : nil
    }
}

/// The growing wait between tries.
struct Backoff: Sendable, Equatable {
    /// The first wait, before its random part.
    static let first = Duration.milliseconds(500)
    /// The longest wait that grows by itself.
    static let longest = Duration.seconds(60)

    private(set) var failures = 0

    /// Counts one more failed try, and returns the wait until the next; `random` is from 0 to 1.
    ///
    /// Half of it is random, so that senders which failed together do not all try again together. A wait that the collector
    /// asks for is never cut short; a tenth of it at most is added.
    mutating func next(random: Double, asked: Duration? = nil) -> Duration {
        failures += 1
        // 2^7 × 0.5 s is over the longest.
        let full = min(Self.first * (1 << min(failures - 1, 7)), Self.longest)
        let own = full / 2 + full / 2 * random
        return max(own, asked.map { $0 + $0 / 10 * random } ?? .zero)
    }

    mutating func reset() { failures = 0 }
}

struct ShipClock {
    /// Nanoseconds of the monotonic clock, by which all waits go.
    var now: () -> UInt64
    /// The wall clock, which may jump; read only to understand a date in `Retry-After`.
    var wallTime: () -> Timestamp
    var isStopRequested: () -> Bool
    /// Waits until a time of the monotonic clock, or for the signal.
    var wait: (UInt64) -> Void
}

/// What a collector's answer means for the reports of a request.
enum ShipmentOutcome: Sendable, Equatable {
    case delivered
    case retry(reason: String, after: Duration?, isRefusal: Bool)
    /// Send fewer at a time: one of them may be the reason.
    case split(reason: String)
    /// Keep them aside and go on with the next ones.
    case setAside(reason: String)

    /// Judges an answer; `isGivenUp` if the collector has refused everything for so long that it is not asked again.
    init(_ answer: OTLPAnswer, reports: Int, isGivenUp: Bool, now: Timestamp) {
        let reason = Self.reason(answer)
        let wait = RetryAfter.wait(answer.retryAfter, date: answer.date, now: now)
        switch answer.status {
        case 0, 408, 425, 429, 500...599:
            self = .retry(reason: reason, after: wait, isRefusal: false)
        case 200...299:
            guard let partial = answer.partialSuccess else {
                // A web page, for example: the URL is not a collector's.
                self = Self.refusal("\(reason): this is not an answer of OTLP", wait, isGivenUp)
                return
            }
            // The collector does not say which ones, and the specification forbids to send them again.
            self =
                partial.rejected > 0
                ? .setAside(reason: "the collector rejected \(partial.rejected) of \(reports): \(partial.message)")
                : .delivered
        case 100...399, 401...407, 409...411, 415...417, 421, 423, 424, 426...428, 451:
            // These are about the sender, the URL or the protocol, and not about a report.
            self = Self.refusal(reason, wait, isGivenUp)
        default:
            self = reports > 1 ? .split(reason: reason) : .setAside(reason: reason)
        }
    }

    private static func refusal(_ reason: String, _ wait: Duration?, _ isGivenUp: Bool) -> ShipmentOutcome {
        isGivenUp ? .setAside(reason: reason) : .retry(reason: reason, after: wait, isRefusal: true)
    }

    private static func reason(_ answer: OTLPAnswer) -> String {
        guard answer.status != 0 else { return answer.error.isEmpty ? "no answer" : answer.error }
        return "HTTP status \(answer.status)" + (answer.message.isEmpty ? "" : ", \(answer.message)")
    }
}

/// The wait that a collector asks for in `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
    /// The longest wait that is honored, so that a wrong value does not end shipping.
    static let longest = Duration.seconds(3_600)

    /// The wait that the field asks for by a number of seconds or a date, 0 to ``longest``; `nil` if it is malformed.
    ///
    /// `date` is the answer's `Date`: the difference of two times of the collector does not depend on this machine's clock.
    /// Without it, this machine's time `now` counts.
    static func wait(_ field: String, date: String, now: Timestamp) -> Duration? {
        let text = field.trimmed
        if !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) {
            return Int64(text).map { min(.seconds($0), longest) } ?? longest
        }
        guard let end = time(text) else { return nil }
        let start = time(date.trimmed) ?? now
        let (microseconds, overflows) = end.microsecondsSince1970.subtractingReportingOverflow(
            start.microsecondsSince1970)
        guard !overflows else { return longest }
        return min(max(.microseconds(microseconds), .zero), longest)
    }

    /// A date such as `Sun, 06 Nov 1994 08:49:37 GMT`: the only form that is sent today (RFC 9110, section 5.6.7).
    static func time(_ text: String) -> Timestamp? {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])) else {
            return nil
        }
        return Timestamp("\(parts[3])-\("\(101 + month)".dropFirst())-\(parts[1])T\(parts[4]).000000Z")
    }
}
