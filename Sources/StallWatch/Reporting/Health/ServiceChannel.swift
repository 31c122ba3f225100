import LinuxSupport
import StallReports

/// Tells the service manager that started the process: systemd, or another one with the protocol of sd_notify(3).
final class ServiceChannel: HealthChannel {
    let answerLimit: UInt64
    private let notifier: ServiceNotifier
    private var feed: ServiceFeed
    /// Receives the error number of an attempt that failed, and whether it is the first one in a row.
    private let failed: @Sendable (Int32, Bool) -> Void
    private var isFailing = false

    init(_ notifier: ServiceNotifier, feed: ServiceFeed, failed: @escaping @Sendable (Int32, Bool) -> Void) {
        self.notifier = notifier
        self.feed = feed
        self.failed = failed
        answerLimit = min(feed.period ?? .max, 1_000_000_000)
    }

    func publish(_ record: HealthRecord?, at now: UInt64) -> UInt64 {
        let (message, after) = feed.next(record, at: now)
        if let message, send(message) { feed = after }
        return feed.nextLook(at: now)
    }

    func finish(_ record: HealthRecord) {
        // A service that has never been ready has nothing to stop.
        if feed.isReady { _ = send("STOPPING=1\nSTATUS=\(ServiceNotifier.statusLine(record.summary))") }
    }

    /// Returns whether the manager's socket has taken the message.
    private func send(_ message: String) -> Bool {
        let error = notifier.send(message)
        if let error { failed(error, !isFailing) }
        isFailing = error != nil
        return error == nil
    }
}
