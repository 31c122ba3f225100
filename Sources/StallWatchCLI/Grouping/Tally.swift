/// Adds up weights by value.
struct Tally<Value: Hashable & Sendable>: Sendable, Equatable {
    private var weights: [Value: Double] = [:]

    mutating func add(_ value: Value, _ weight: Double) { weights[value, default: 0] += weight }

    /// The number of different values.
    var count: Int { weights.count }

    /// The value with the largest weight; the first by `order` among equals, so that every run gives the same result.
    func heaviest(by order: (Value, Value) -> Bool) -> Value? {
        weights.max { $0.value != $1.value ? $0.value < $1.value : order($1.key, $0.key) }?.key
    }
}
