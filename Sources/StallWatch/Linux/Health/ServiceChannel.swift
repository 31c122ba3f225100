import LinuxSupport
import StallReports

/// Notifies the service manager that started the process: systemd, or another one with the protocol of sd_notify(3).
final class ServiceChannel: HealthChannel {
    let threadName = "stallwatch-svc"
    let answerLimit: UInt64
    private let notifier: ServiceNotifier
    private var feed: ServiceFeed
    private let isMain: Bool

    /// `isMain`: whether the end of this process is the service's, and not that of a worker which inherited the socket.
    init(_ notifier: ServiceNotifier, feed: ServiceFeed, isMain: Bool) {
        self.notifier = notifier
        self.feed = feed
        self.isMain = isMain
        answerLimit = min(feed.period ?? .max, 1_000_000_000)
    }

    func publish(_ record: HealthRecord?, at now: UInt64) throws(StallWatchError) {
        let (message, after) = feed.next(record, at: now)
        guard let message else { return }
        try send(message)
        feed = after
    }

    func nextCheck(at now: UInt64) -> UInt64 { feed.nextCheck(at: now) }

    func finish(_ record: HealthRecord) throws(StallWatchError) {
        // A service that has never been ready has nothing to stop. For a worker's message systemd would end all of it.
        if feed.isReady, isMain { try send("STOPPING=1\nSTATUS=\(ServiceNotifier.statusLine(record.summary))") }
    }

    private func send(_ message: String) throws(StallWatchError) {
        if let error = notifier.send(message) {
            throw StallWatchError(.systemFailure, "the service manager's socket takes no message", errno: error)
        }
    }
}

/// Decides which messages are sent to a service manager, and when (a pure value).
///
/// `READY=1` is sent once, when all loops make progress for the first time; from then on `WATCHDOG=1`, while all do;
/// `STATUS=` when a stall begins, when its function is known, and when it ends.
struct ServiceFeed: Equatable {
    /// The time between two checks before the service is ready, in nanoseconds.
    static let readyPoll: UInt64 = 100_000_000
    /// The longest time between two attempts to send a message that is due, in nanoseconds.
    static let longestRetry: UInt64 = 1_000_000_000

    /// The longest time between two `WATCHDOG=1`, in nanoseconds; `nil` if the manager expects none.
    let period: UInt64?
    /// The time between two checks if the manager expects no `WATCHDOG=1`, in nanoseconds.
    let interval: UInt64

    private(set) var isReady = false
    /// When the last `WATCHDOG=1` was due, in monotonic nanoseconds; `nil` if none was sent.
    private(set) var fedAt: UInt64?
    /// The parts of the last status that are worth a new message; a longer duration is not.
    private(set) var status: [String?] = []

    /// Returns the message that is due, if one is, and the feed once the manager has received it.
    func next(_ record: HealthRecord?, at now: UInt64) -> (message: String?, after: ServiceFeed) {
        guard let record else { return (nil, self) }
        var after = self
        var lines: [String] = []
        // A monitor that is turned off must not end the service.
        let isOK = record.state == .ok || record.state == .off
        if isOK, !isReady {
            after.isReady = true
            lines.append("READY=1")
        }
        if isOK, let period {
            let due = fedAt.map { $0 &+ period } ?? now
            if now >= due {
                // A feed that is a little late keeps its beat; after a pause, a new beat begins.
                after.fedAt = now &- due < period / 4 ? due : now
                lines.append("WATCHDOG=1")
            }
        }
        let stall = record.stall
        let status = [record.state.rawValue, stall?.report, stall?.function, (stall?.isOngoing).map { "\($0)" }]
        if status != self.status {
            after.status = status
            let last = stall.flatMap { $0.isOngoing ? nil : "; last stall: \($0.sentence)" } ?? ""
            lines.append("STATUS=" + ServiceNotifier.statusLine(record.summary + last))
        }
        return (lines.isEmpty ? nil : lines.joined(separator: "\n"), after)
    }

    /// Returns when to check the loops again, in monotonic nanoseconds.
    func nextCheck(at now: UInt64) -> UInt64 {
        guard isReady else { return now &+ Self.readyPoll }
        guard let period, let fedAt else { return now &+ min(period ?? interval, interval) }
        let due = fedAt &+ period
        // A feed that is due is sent as soon as the loops make progress again.
        return due > now ? due : now &+ min(max(period / 10, 1_000_000), Self.longestRetry)
    }
}
