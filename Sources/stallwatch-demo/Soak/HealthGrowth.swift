/// The growth of the process from the earlier half of a soak to the later one.
struct HealthGrowth: Equatable, Encodable, Sendable {
    /// The growth of the memory that is allocated and not freed, in kilobytes.
    var memory: Int
    var descriptors: Int
    var threads: Int
    var mappings: Int

    /// The growth that is no leak.
    ///
    /// The outcomes of all scenarios stay until the end, some kilobytes each. There may be two more workers. A worker of a pool
    /// that has used its run loop keeps two descriptors for its life, and every thread keeps three mappings.
    static let margin = HealthGrowth(memory: 8 * 1024, descriptors: 4, threads: 4, mappings: 50)

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
