/// The reports of a directory that have not been sent, in order, and how many to send at a time.
///
/// Reports are known by their file names, which begin with the time of the stall.
struct ShipQueue: Sendable, Equatable {
    /// The most reports in a request.
    static let maximumBatch = 256

    /// The names of reports whose files have not been read, or are to be read again.
    ///
    /// The first ones are done.
    private var names: [String] = []
    private var first = 0
    private var waiting: Set<String> = []
    /// The most reports in the next request.
    private(set) var limit = Self.maximumBatch

    var count: Int { names.count - first }
    var isEmpty: Bool { count == 0 }

    /// The next report; `nil` if there is none.
    var next: String? { isEmpty ? nil : names[first] }

    /// Adds new and changed reports, except those that are done or already wait.
    mutating func add(_ found: [String], done: (String) -> Bool) {
        for name in found where !done(name) && waiting.insert(name).inserted { names.append(name) }
    }

    /// Removes the next report.
    mutating func removeNext() {
        guard let name = next else { return }
        waiting.remove(name)
        first += 1
        // Half of the array at most is done names, so each name is moved once on average.
        guard first * 2 > names.count else { return }
        names.removeFirst(first)
        first = 0
    }

    /// After a request was too much for the collector, or had a report that it does not take.
    mutating func shrink(from sent: Int) { limit = max(min(sent, limit) / 2, 1) }

    /// After a success.
    mutating func grow() { limit = min(limit * 2, Self.maximumBatch) }
}
