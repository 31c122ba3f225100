import LinuxSupport
import Synchronization

/// A thread that reports a test which does not end in time.
final class HangTimer: Sendable {
    /// What was found.
    struct Hang: Equatable, Sendable {
        var text: String
        var json: String?
    }

    private let hasEnded = Semaphore()
    private let hang = Mutex<Hang?>(nil)

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - limit: The time after which a test hangs, in nanoseconds.
    ///   - report: Called once, on the thread, with the time at which the test began in monotonic nanoseconds.
    /// - Throws: ``SystemError`` if the system refuses the thread.
    init(limit: UInt64, report: @escaping @Sendable (UInt64) -> Hang) throws(SystemError) {
        let began = monotonicNow()
        try WorkerThread(name: "stallwatch-hang") { [self] in
            guard !hasEnded.wait(until: began &+ limit) else { return }
            let found = report(began)
            hang.withLock { $0 = found }
        }.detach()
    }

    /// Ends the timer; returns what it has reported, `nil` if nothing or if it is about to.
    func end() -> Hang? {
        hasEnded.post()
        return hang.withLock { $0 }
    }
}
