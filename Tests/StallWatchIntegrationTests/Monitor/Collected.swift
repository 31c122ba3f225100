import Synchronization

/// The values that closures receive on other threads.
final class Collected<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    var all: [Value] { values.withLock { $0 } }
    func add(_ value: Value) { values.withLock { $0.append(value) } }
}
