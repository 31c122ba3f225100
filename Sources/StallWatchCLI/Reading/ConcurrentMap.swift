import Dispatch
import Synchronization

extension Array where Element: Sendable {
    /// What `body` makes of each element, on all processors at once, in the order of the elements.
    func concurrentMap<Result: Sendable>(_ body: @Sendable (Element) -> Result) -> [Result] {
        let results = Mutex([Result?](repeating: nil, count: count))
        DispatchQueue.concurrentPerform(iterations: count) { index in
            let result = body(self[index])
            results.withLock { $0[index] = result }
        }
        return results.withLock { $0.compactMap(\.self) }
    }
}
