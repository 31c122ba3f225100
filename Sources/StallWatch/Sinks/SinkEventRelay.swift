import Synchronization

/// Lets sinks send something to the other sinks, which are made after them.
final class SinkEventRelay: Sendable {
    private let receiver = Mutex<(@Sendable (Delivery) -> Void)?>(nil)

    func open(_ receiver: @escaping @Sendable (Delivery) -> Void) {
        self.receiver.withLock { $0 = receiver }
    }

    func post(_ delivery: Delivery) {
        receiver.withLock { $0 }?(delivery)
    }

    /// Gives the receiver back, and the sinks with it: they refer to this board.
    func close() {
        receiver.withLock { $0 = nil }
    }
}
