import Synchronization

/// Whether a signal has asked a command to end.
final class Ending: Sendable {
    private let flag = Mutex(false)

    func set() { flag.withLock { $0 = true } }

    var isSet: Bool { flag.withLock { $0 } }
}
