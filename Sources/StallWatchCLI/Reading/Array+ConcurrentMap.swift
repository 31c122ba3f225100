import Dispatch
import Synchronization

extension Array where Element: Sendable {
    /// Maps the elements on all processors at once; keeps their order.
    func concurrentMap<Result: Sendable>(_ body: @Sendable (Element) -> Result) -> [Result] {
        let results = Mutex([Result?](repeating: nil, count: count))
        DispatchQueue.concurrentPerform(iterations: count) { index in
            let result = body(self[index])
            results.withLock { $0[index] = result }
        }
        return results.withLock { $0.compactMap(\.self) }
    }
}
