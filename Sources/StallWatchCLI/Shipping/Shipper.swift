import LinuxSupport
import StallReports
import TextOutput
import Glibc

/// Sends the finished reports of directories to a collector until it is asked to end.
///
/// One request at a time, from the directories in turn. A report is done when the collector has answered, so each one
/// arrives at least once. Waits use the monotonic clock only.
final class Shipper {
    /// What one run may take.
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

    /// The time between two polls, in nanoseconds.
    ///
    /// An idle poll costs one stat(2) a directory.
    private static let period: UInt64 = 500_000_000

    /// Posts a message of a kind of data, and waits for the answer.
    typealias Post = (
        _ signal: OTLPSettings.Signal, _ message: [UInt8], _ timeoutMilliseconds: Int
    ) -> OTLPAnswer

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
    /// Whether the last try failed.
    var isFailing: Bool { backoff.failures > 0 }
    /// Finished reports that are known and not delivered.
    var waiting: Int { directories.reduce(0) { $0 + $1.waiting } }

    func run() {
        while true {
            // Before the last poll, which finds the reports that programs wrote until the signal.
            let isEnding = clock.isEnding()
            if isEnding { deadline = clock.now() + nanoseconds(limits.flush) }
            for directory in directories { directory.poll(now: clock.now()) }
            if isEnding || clock.now() >= retryAt { sendAll() }
            if isEnding { return }
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
                if deadline == nil, clock.isEnding() { return }
                guard let request = directory.nextRequest() else { continue }
                guard let timeout = remainingMilliseconds() else { return }
                let answer = post(.logs, request.bytes(), timeout)
                let outcome = ShipmentOutcome(
                    answer, reports: request.count, isGivenUp: isGivenUp(),
                    now: clock.wallTime()
                )
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
            if backoff.failures == 0 { log("The collector does not take reports: \(reason.printable). Trying again.") }
            let wait = backoff.next(random: .random(in: 0...1), asked: asked)
            retryAt = clock.now() + nanoseconds(wait)
            if isRefusal, refusedSince == nil { refusedSince = clock.now() }
            if !isRefusal { refusedSince = nil }
            return false
        case .delivered:
            if backoff.failures > 0 { log("The collector takes reports again.") }
            backoff.reset()
            refusedSince = nil
        case .setAside:
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
