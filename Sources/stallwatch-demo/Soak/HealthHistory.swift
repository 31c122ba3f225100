/// What the process had after each scenario, and whether it has become more.
///
/// A reading goes up and down with what has just run: threads of pools end after a while, freed memory is kept. What has
/// leaked is still there at every later moment. So the least of the later half of the readings is compared with the least
/// of the earlier half.
struct HealthHistory {
    /// From when on readings count: caches are filled, pools have their threads.
    private(set) var isWarm = false
    private(set) var readings: [ProcessHealth] = []
    /// The reading that came last, warm or not.
    private(set) var last: ProcessHealth?

    /// Fewer than this in each half would compare one scenario with another.
    static let leastPerHalf = 3

    /// Everything has been used once.
    mutating func warmUpIsOver() {
        isWarm = true
    }

    /// One more reading.
    mutating func add(_ reading: ProcessHealth) {
        last = reading
        if isWarm { readings.append(reading) }
    }

    /// By how much everything has grown; `nil` as long as there are too few readings to say.
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

/// By how much the process has grown from the earlier half of a soak to the later one.
struct HealthGrowth: Equatable, Encodable, Sendable {
    /// In kilobytes.
    var memory: Int
    var descriptors: Int
    var threads: Int
    var mappings: Int

    /// How much of it is no leak.
    ///
    /// A worker of a pool that has touched its run loop keeps two descriptors, and every thread three mappings, for as long as
    /// it lives: there may be two workers more.
    static let margin = HealthGrowth(memory: 16 * 1024, descriptors: 4, threads: 4, mappings: 50)

    /// What has grown by more than ``margin``, a sentence each.
    var problems: [String] {
        let all = [
            ("KB of memory", memory, Self.margin.memory), ("file descriptors", descriptors, Self.margin.descriptors),
            ("threads", threads, Self.margin.threads), ("mappings", mappings, Self.margin.mappings),
        ]
        return all.compactMap { name, growth, margin in
            growth > margin ? "\(growth) \(name) more than before, where \(margin) are allowed" : nil
        }
    }
}
