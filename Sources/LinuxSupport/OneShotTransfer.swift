import Synchronization

/// Hands one value from the thread that makes it to the one that keeps it.
///
/// `@unchecked Sendable`: the value is put in before the object is shared, and the mutex lets only one caller take it.
package final class OneShotTransfer<Value>: @unchecked Sendable {
    private let value: Mutex<Value?>

    package init(_ value: sending Value) {
        self.value = Mutex(value)
    }

    package func take() -> sending Value? {
        value.withLock { value in
            defer { value = nil }
            return value
        }
    }
}
