import LinuxSupport
import Synchronization

/// Whether a signal has asked to end, and the wait that it ends.
final class ShipEnding: Sendable {
    private let flag = Mutex(false)
    private let semaphore = Semaphore()

    var isSet: Bool { flag.withLock { $0 } }

    func set() {
        flag.withLock { $0 = true }
        semaphore.post()
    }

    /// Waits until a time of the monotonic clock, or for the signal.
    func wait(until deadline: UInt64) {
        guard !isSet else { return }
        semaphore.wait(until: deadline)
    }
}
