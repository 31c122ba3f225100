/// The counts of a monitor's work so far, and the numbers of its loops.
///
/// In a file they are JSON, whose field names say the units.
public struct MonitorStatistics: Codable, Sendable, Equatable {
    /// The number of stalls that are over, reported or not, including those that were ongoing when the monitor stopped.
    public package(set) var stalls = 0
    /// The number of these stalls that were over when the watchdog looked.
    ///
    /// Their reports have the loop's own times, no samples, and the reason. Of a loop with more than 8 of them between two looks, the
    /// others are only counted.
    public package(set) var missed = 0
    /// The number of suppressions by reason: a threshold was exceeded, but no report was made.
    ///
    /// Repeats and stalls over the limit per minute are also counted in ``stalls``. Suppressions for another reason are not,
    /// because they are no stalls.
    public package(set) var suppressed = SuppressionCounts()
    /// The number of reports that a slow reader of the monitor's stream of reports missed.
    public package(set) var reportsDropped = 0
    /// The number of reports that an output missed.
    ///
    /// An output misses a report if more than 64 are waiting for it, or if the monitor stops before the output can write the
    /// report.
    public package(set) var reportsLost = 0
    /// The number of reports that were removed to keep a directory within its quota.
    public package(set) var reportsRemoved = 0
    /// The number of reports that earlier processes left unfinished, found when the monitor started.
    public package(set) var reportsRecovered = 0
    /// The number of failed attempts of an output to take a report, and of the monitor to notify a supervisor.
    public package(set) var failedWrites = 0
    /// The number of operations that were not watched, because 10,000 others were in progress.
    public package(set) var unwatchedOperations = 0
    /// The error of the last failed attempt, in a sentence.
    public package(set) var lastWriteError: String?
    /// The numbers of each watched loop, sorted by label.
    public package(set) var loops: [LoopStatistics] = []

    package init() {}

    private enum CodingKeys: CodingKey, CaseIterable {
        case stalls, missed, reportsDropped, reportsLost, reportsRemoved, reportsRecovered, failedWrites
        case unwatchedOperations, suppressed, lastWriteError, loops

        /// The count with this key; `nil` for the fields that are no counts.
        var count: WritableKeyPath<MonitorStatistics, Int>? {
            switch self {
            case .stalls: \.stalls
            case .missed: \.missed
            case .reportsDropped: \.reportsDropped
            case .reportsLost: \.reportsLost
            case .reportsRemoved: \.reportsRemoved
            case .reportsRecovered: \.reportsRecovered
            case .failedWrites: \.failedWrites
            case .unwatchedOperations: \.unwatchedOperations
            case .suppressed, .lastWriteError, .loops: nil
            }
        }
    }

    /// Decodes statistics; a missing count is 0.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if ``suppressed`` or ``loops`` is missing, or a number is out of range.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        for key in CodingKeys.allCases { if let count = key.count { self[keyPath: count] = try fields.count(key) } }
        suppressed = try fields.decode(SuppressionCounts.self, forKey: .suppressed)
        guard suppressed.firstNegative == nil else { throw fields.outOfRange(.suppressed) }
        lastWriteError = try fields.decodeIfPresent(String.self, forKey: .lastWriteError)
        loops = try fields.decode([LoopStatistics].self, forKey: .loops)
    }

    /// Returns the statistics as JSON.
    ///
    /// - Returns: UTF-8 text, indented, with sorted keys and a line feed at the end.
    public func jsonData() -> [UInt8] { encodeJSON(self, isIndented: true) }

    /// Adds the counts of other statistics, and their loops to those with the same label.
    package mutating func add(_ other: MonitorStatistics) {
        for case let count? in CodingKeys.allCases.map(\.count) { self[keyPath: count] &+= other[keyPath: count] }
        suppressed.add(other.suppressed)
        lastWriteError = other.lastWriteError ?? lastWriteError
        var byLabel = Dictionary(loops.map { ($0.label, $0) }) { first, _ in first }
        for loop in other.loops { byLabel[loop.label, default: LoopStatistics(label: loop.label)].add(loop) }
        loops = byLabel.values.sorted { $0.label < $1.label }
    }
}

/// What a loop, or all loops with one label, did in a time: since the monitor watches it, or in an interval.
///
/// The numbers of queues, pools and event loops without observers are those of their heartbeats: a turn is then the time until
/// one has run.
public struct LoopStatistics: Codable, Sendable, Equatable {
    /// The loop's label.
    public let label: String
    /// The time that these numbers are about.
    public package(set) var watchedTime = Duration.zero
    /// The number of turns that are over.
    public package(set) var turns: UInt64 = 0
    /// The total duration of these turns.
    public package(set) var busyTime = Duration.zero
    /// The duration of the turn in progress so far; `nil` while the loop waits, and in an interval.
    public package(set) var currentTurn: Duration?
    /// The number of stalls that are over; 0 in an interval.
    public package(set) var stalls = 0
    /// The number of these stalls that were over when the watchdog looked; 0 in an interval.
    public package(set) var missed = 0
    /// The total duration of these stalls.
    public package(set) var stallTime = Duration.zero
    /// When the last of these stalls was counted; `nil` if there was none.
    public package(set) var lastStall: Timestamp?
    /// The number of turns that were stopped for a sample before the threshold, but did not become stalls.
    ///
    /// At most one in 1,000 turns, plus the first one.
    public package(set) var earlyStops = 0
    /// The number of timers that the looks at the loop found late, by a millisecond or more; 0 in an interval.
    ///
    /// The monitor looks at timers in long turns, and while another mode runs, or no thread runs the loop: more may have been
    /// late.
    public package(set) var lateTimers = 0
    /// The longest delay of these timers; `nil` without one.
    public package(set) var longestTimerDelay: Duration?
    /// The duration from which a turn is a stall; of several loops with the label, the longest.
    public package(set) var threshold = Duration.zero
    /// The part of the watched time in which the loop was in a turn, 0 to 1; of several, the largest.
    ///
    /// The turn in progress counts. `nil` for loops with heartbeats, and for the main loop while only its queue has run.
    public package(set) var utilization: Double?
    /// The distribution of turn durations, the shortest first; buckets without turns are omitted.
    public package(set) var latency: [LatencyBucket] = []

    package init(label: String) { self.label = label }

    package var isStalled: Bool { currentTurn.map { $0 >= threshold } ?? false }

    /// The average number of stalls per hour.
    public var stallsPerHour: Double {
        guard watchedTime > .zero else { return 0 }
        // Swift 6.2 does not compile it in one expression.
        let hours: Double = watchedTime / .seconds(3_600)
        return Double(stalls) / hours
    }

    /// The part of the watched time that the stalls took, 0 to 1: of several loops with the label, those of all, at most 1.
    public var stalledShare: Double { watchedTime > .zero ? min(stallTime / watchedTime, 1) : 0 }

    /// The mean duration of the turns that are over; `nil` if there was none.
    public var meanTurn: Duration? { turns == 0 ? nil : busyTime / turns }

    /// Returns the duration that a fraction of all turns did not exceed.
    ///
    /// - Parameter quantile: The fraction: 0 to 1. Values outside are clamped.
    /// - Returns: The duration, at most 12.5 % too large; `nil` if there was no turn, or if it is over 4.8 hours.
    public func turnDuration(quantile: Double) -> Duration? {
        let all = latency.reduce(0) { $0 &+ $1.turns }
        // Of a damaged file the sum may be near 2^64, which no Double below it stands for.
        let rank = max(UInt64(exactly: (min(max(quantile, 0), 1) * Double(all)).rounded(.up)) ?? .max, 1)
        var seen: UInt64 = 0
        return latency.first { bucket in
            seen &+= bucket.turns
            return seen >= rank
        }?.upperBound
    }

    /// Adds the numbers of a loop with the same label.
    package mutating func add(_ other: LoopStatistics) {
        watchedTime += other.watchedTime
        turns &+= other.turns
        busyTime += other.busyTime
        stalls &+= other.stalls
        missed &+= other.missed
        stallTime += other.stallTime
        lastStall = [lastStall, other.lastStall].compactMap(\.self).max()
        earlyStops &+= other.earlyStops
        lateTimers &+= other.lateTimers
        longestTimerDelay = [longestTimerDelay, other.longestTimerDelay].compactMap(\.self).max()
        threshold = max(threshold, other.threshold)
        utilization = [utilization, other.utilization].compactMap(\.self).max()
        let counts = Dictionary((latency + other.latency).map { ($0.upperBound, $0.turns) }, uniquingKeysWith: &+)
        latency = counts.map { LatencyBucket(upperBound: $0, turns: $1) }
            .sorted { ($0.upperBound ?? .seconds(Int64.max)) < ($1.upperBound ?? .seconds(Int64.max)) }
    }
}

/// A group of turns of about the same duration.
public struct LatencyBucket: Codable, Sendable, Equatable {
    /// The bucket's upper bound; `nil` in the bucket for turns over 4.8 hours.
    ///
    /// Every turn in the bucket took less than this, and at least 8/9 of it. In the bucket below 1.024 µs there is no lower
    /// bound.
    public let upperBound: Duration?
    /// The number of turns in the bucket.
    public let turns: UInt64

    /// The largest bound that a bucket has: 4.8 hours.
    package static let largestBound = Duration.nanoseconds(1 << 44)

    package init(upperBound: Duration?, turns: UInt64) {
        self.upperBound = upperBound
        self.turns = turns
    }

    private enum CodingKeys: CodingKey { case belowMicroseconds, turns }

    /// Decodes a bucket.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if a number is missing or out of range.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        upperBound = try fields.duration(.belowMicroseconds, in: .microseconds(1))
        turns = UInt64(try fields.count(.turns))
    }

    /// Encodes the bucket, with its bound in microseconds.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: An error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encodeIfPresent(upperBound.map { $0 / .microseconds(1) }, forKey: .belowMicroseconds)
        try fields.encode(turns, forKey: .turns)
    }
}

extension LoopStatistics {
    private enum CodingKeys: CodingKey {
        case label, watchedSeconds, turns, busySeconds, currentTurnMilliseconds, stalls, missed, stallSeconds
        case lastStall
        case earlyStops, lateTimers, longestTimerDelayMilliseconds, thresholdMilliseconds, utilization, latency
        // Computed of the others, for readers of the JSON.
        case stallsPerHour, stalledShare, meanMilliseconds, p50Milliseconds, p90Milliseconds, p99Milliseconds
        case longestMilliseconds
    }

    /// Decodes the numbers of a loop; a missing one is 0.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if the label or the watched time is missing, or a number is out of range.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        self.init(label: try fields.decode(String.self, forKey: .label))
        func duration(_ key: CodingKeys, in unit: Duration) throws -> Duration {
            try fields.duration(key, in: unit) ?? .zero
        }
        guard let watched = try fields.duration(.watchedSeconds, in: .seconds(1)) else {
            throw fields.outOfRange(.watchedSeconds)
        }
        watchedTime = watched
        turns = UInt64(try fields.count(.turns))
        busyTime = try duration(.busySeconds, in: .seconds(1))
        currentTurn = try fields.duration(.currentTurnMilliseconds, in: .milliseconds(1))
        stalls = try fields.count(.stalls)
        missed = try fields.count(.missed)
        stallTime = try duration(.stallSeconds, in: .seconds(1))
        lastStall = try fields.decodeIfPresent(Timestamp.self, forKey: .lastStall)
        earlyStops = try fields.count(.earlyStops)
        lateTimers = try fields.count(.lateTimers)
        longestTimerDelay = try fields.duration(.longestTimerDelayMilliseconds, in: .milliseconds(1))
        threshold = try duration(.thresholdMilliseconds, in: .milliseconds(1))
        utilization = try fields.decodeIfPresent(Double.self, forKey: .utilization)
        latency = try fields.decodeIfPresent([LatencyBucket].self, forKey: .latency) ?? []
    }

    /// Encodes the numbers, with units in the names, and what is computed of them.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: An error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(label, forKey: .label)
        for (key, duration) in [
            (CodingKeys.watchedSeconds, watchedTime), (.busySeconds, busyTime), (.stallSeconds, stallTime),
        ] {
            try fields.encode(duration / .seconds(1), forKey: key)
        }
        for (key, duration) in [
            (CodingKeys.currentTurnMilliseconds, currentTurn), (.thresholdMilliseconds, threshold),
            (.longestTimerDelayMilliseconds, longestTimerDelay),
            (.meanMilliseconds, meanTurn), (.p50Milliseconds, turnDuration(quantile: 0.5)),
            (.p90Milliseconds, turnDuration(quantile: 0.9)), (.p99Milliseconds, turnDuration(quantile: 0.99)),
            (.longestMilliseconds, turnDuration(quantile: 1)),
        ] {
            try fields.encodeIfPresent(duration.map { $0 / .milliseconds(1) }, forKey: key)
        }
        try fields.encode(turns, forKey: .turns)
        try fields.encode(stalls, forKey: .stalls)
        try fields.encode(missed, forKey: .missed)
        try fields.encode(stallsPerHour, forKey: .stallsPerHour)
        try fields.encode(stalledShare, forKey: .stalledShare)
        try fields.encodeIfPresent(lastStall, forKey: .lastStall)
        try fields.encode(earlyStops, forKey: .earlyStops)
        try fields.encode(lateTimers, forKey: .lateTimers)
        try fields.encodeIfPresent(utilization, forKey: .utilization)
        try fields.encode(latency, forKey: .latency)
    }
}

extension KeyedDecodingContainer {
    /// The bound of every count: 2^53, above which JSON's numbers are not exact.
    private static var countLimit: Int { 1 << 53 }
    /// The bound of every duration, in its unit: sums of them do not overflow.
    private static var durationLimit: Double { 1e12 }

    /// Decodes a count; 0 if it is missing.
    fileprivate func count(_ key: Key) throws -> Int {
        guard let count = try decodeIfPresent(Int.self, forKey: key) else { return 0 }
        guard (0..<Self.countLimit).contains(count) else { throw outOfRange(key) }
        return count
    }

    /// Decodes a duration in units; `nil` if it is missing.
    fileprivate func duration(_ key: Key, in unit: Duration) throws -> Duration? {
        guard let number = try decodeIfPresent(Double.self, forKey: key) else { return nil }
        guard (0..<Self.durationLimit).contains(number) else { throw outOfRange(key) }
        return unit * number
    }

    fileprivate func outOfRange(_ key: Key) -> DecodingError {
        .dataCorruptedError(forKey: key, in: self, debugDescription: "the number is missing or out of range")
    }
}
