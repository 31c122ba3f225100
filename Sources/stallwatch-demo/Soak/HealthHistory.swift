/// The resources of the process after each scenario, and their growth.
///
/// Readings fluctuate: pools end their threads after some time, and freed memory is kept. A leak is in every later reading.
/// So the growth is the least reading of the later half minus the least of the earlier half.
struct HealthHistory {
    /// Whether caches are filled and pools have their threads.
    ///
    /// Only later readings count.
    private(set) var isWarm = false
    private(set) var readings: [ProcessHealth] = []
    /// The last reading, warm or not.
    private(set) var last: ProcessHealth?

    /// The least number of readings in each half.
    ///
    /// Fewer would compare one scenario with another.
    static let leastPerHalf = 3

    /// Ends the warm-up.
    mutating func warmUpIsOver() {
        isWarm = true
    }

    /// Adds a reading.
    mutating func add(_ reading: ProcessHealth) {
        last = reading
        if isWarm { readings.append(reading) }
    }

    /// The growth of each resource; `nil` if there are too few readings.
    var growth: HealthGrowth? {
        let half = readings.count / 2
        guard half >= Self.leastPerHalf else { return nil }
        let earlier = readings.prefix(half)
        let later = readings.suffix(half)
        func grown(_ value: (ProcessHealth) -> Int) -> Int {
            // Neither is empty.
            (later.map(value).min() ?? 0) - (earlier.map(value).min() ?? 0)
        }
        return HealthGrowth(
            memory: grown(\.memory), descriptors: grown(\.descriptors), threads: grown(\.threads),
            mappings: grown(\.mappings)
        )
    }
}

/// The growth of the process from the earlier half of a soak to the later one.
struct HealthGrowth: Equatable, Encodable, Sendable {
    /// The growth of private memory in kilobytes.
    var memory: Int
    var descriptors: Int
    var threads: Int
    var mappings: Int

    /// The growth that is no leak.
    ///
    /// There may be two more workers. A worker of a pool that has used its run loop keeps two descriptors for its life, and every
    /// thread keeps three mappings.
    static let margin = HealthGrowth(memory: 16 * 1024, descriptors: 4, threads: 4, mappings: 50)

    /// The resources that have grown by more than ``margin``, one phrase each.
    var problems: [String] {
        let all = [
            ("KB of memory", memory, Self.margin.memory), ("file descriptors", descriptors, Self.margin.descriptors),
            ("threads", threads, Self.margin.threads), ("mappings", mappings, Self.margin.mappings),
        ]
        return all.compactMap { name, growth, margin in
            growth > margin ? "\(growth) \(name) more than before, where \(margin) may be" : nil
        }
    }
}
