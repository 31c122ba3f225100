import Synchronization

/// Passes deliveries from one sink to the other sinks, which may be created after it.
final class SinkEventRelay: Sendable {
    private let receiver = Mutex<(@Sendable (Delivery) -> Void)?>(nil)

    func open(_ receiver: @escaping @Sendable (Delivery) -> Void) {
        self.receiver.withLock { $0 = receiver }
    }

    func post(_ delivery: Delivery) {
        receiver.withLock { $0 }?(delivery)
    }

    /// Releases the receiver and its sinks, which refer to this relay: otherwise they would form a reference cycle.
    func close() {
        receiver.withLock { $0 = nil }
    }
}
