import Synchronization

/// Transfers one value from the thread that creates it to another thread.
///
/// `@unchecked Sendable`: `init` stores the value before the object is shared, and the mutex lets one caller take it.
package final class OneShotTransfer<Value>: @unchecked Sendable {
    private let value: Mutex<Value?>

    package init(_ value: sending Value) {
        self.value = Mutex(value)
    }

    /// Returns the value to the first caller, and `nil` to later ones.
    package func take() -> sending Value? {
        value.withLock { value in
            defer { value = nil }
            return value
        }
    }
}
