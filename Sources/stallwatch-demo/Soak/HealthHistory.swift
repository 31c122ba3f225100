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
