import StallReports
import LinuxSupport
internal import Foundation

extension StallMonitor {
    /// What a monitor has done so far, and how its loops are doing.
    public struct Statistics: Sendable, Equatable {
        /// Stalls that are over, reported or not, and those that still lasted when the monitor was stopped.
        public internal(set) var stalls = 0
        /// How often something over a threshold was not reported, by reason.
        ///
        /// Repeats and what is over the rate limit are stalls all the same; what was held back for another reason was
        /// none.
        public internal(set) var suppressed = SuppressionCounts()
        /// Reports that a slow reader of ``StallMonitor/reports`` has missed.
        public internal(set) var reportsDropped = 0
        /// Reports that a sink has missed because too many were waiting, or because the monitor was stopped before they
        /// could be written.
        public internal(set) var reportsLost = 0
        /// Reports that were removed to stay inside a directory's quota.
        public internal(set) var reportsRemoved = 0
        /// Reports of stalls that were left by processes that are gone, found at the start.
        public internal(set) var reportsRecovered = 0
        /// Attempts of a sink to take a report that failed.
        public internal(set) var failedWrites = 0
        /// Why the last one of them failed.
        public internal(set) var lastWriteError: StallWatchError?
        /// How the watched loops are doing.
        public internal(set) var loops: [LoopStatistics] = []

        init(_ counts: ReportCounts.Counts) {
            stalls = counts.stalls
            suppressed = counts.suppressed
            reportsDropped = counts.reportsDropped
            reportsLost = counts.reportsLost
            reportsRemoved = counts.reportsRemoved
            reportsRecovered = counts.reportsRecovered
            failedWrites = counts.failedWrites
            lastWriteError = counts.lastWriteError
        }
    }

    /// How a watched loop is doing.
    public struct LoopStatistics: Sendable, Equatable, Encodable {
        /// The loop's label.
        public let label: String
        /// For how long the loop has been watched, in seconds.
        public let watchedSeconds: Double
        /// Turns that are over.
        public let turns: UInt64
        /// The time that they took, in seconds.
        public let busySeconds: Double
        /// Stalls that are over.
        public let stalls: Int
        /// The time that they took, in seconds.
        public let stallSeconds: Double
        /// Stalls in an hour, on average.
        public let stallsPerHour: Double
        /// Seconds of stall in an hour, on average.
        public let stallSecondsPerHour: Double
        /// How long the turns took.
        public let latency: [LatencyBucket]

        init(
            label: String, watchedNanoseconds: UInt64, turns: TurnHistogram.Snapshot, stalls: ReportCounts.StallTotals?
        ) {
            self.label = label
            watchedSeconds = seconds(watchedNanoseconds)
            self.turns = turns.counts.reduce(0, &+)
            busySeconds = seconds(turns.busyNanoseconds)
            self.stalls = stalls?.count ?? 0
            stallSeconds = seconds(stalls?.nanoseconds ?? 0)
            let hours = watchedSeconds / 3_600
            stallsPerHour = hours > 0 ? Double(self.stalls) / hours : 0
            stallSecondsPerHour = hours > 0 ? stallSeconds / hours : 0
            latency = turns.counts.indices.compactMap { index in
                let count = turns.counts[index]
                return count == 0
                    ? nil
                    : LatencyBucket(
                        belowMicroseconds: TurnHistogram.upperBound(of: index).map { Double($0) / 1_000 }, turns: count
                    )
            }
        }

        /// The duration that the fraction `quantile` (0 to 1) of all turns stayed below, in microseconds and at most
        /// 12.5 % too large; `nil` if there was no turn, or if it is over 4.8 hours.
        public func latencyMicroseconds(quantile: Double) -> Double? {
            let rank = UInt64((min(max(quantile, 0), 1) * Double(turns)).rounded(.up))
            var seen: UInt64 = 0
            return latency.first { bucket in
                seen &+= bucket.turns
                return seen >= max(rank, 1)
            }?.belowMicroseconds
        }
    }

    /// Turns of about the same duration.
    public struct LatencyBucket: Sendable, Equatable, Encodable {
        /// All of them took less than this, and at least 8/9 of it, unless it is 1.024; `nil` in the bucket for what
        /// took over 4.8 hours.
        public let belowMicroseconds: Double?
        /// How many there were.
        public let turns: UInt64
    }
}

extension StallMonitor.Statistics: Encodable {
    private enum Key: String, CodingKey {
        case stalls, suppressed, reportsDropped, reportsLost, reportsRemoved, reportsRecovered, failedWrites,
            lastWriteError, loops
    }

    /// Writes the error as its description.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(stalls, forKey: .stalls)
        try container.encode(suppressed, forKey: .suppressed)
        try container.encode(reportsDropped, forKey: .reportsDropped)
        try container.encode(reportsLost, forKey: .reportsLost)
        try container.encode(reportsRemoved, forKey: .reportsRemoved)
        try container.encode(reportsRecovered, forKey: .reportsRecovered)
        try container.encode(failedWrites, forKey: .failedWrites)
        try container.encodeIfPresent(lastWriteError?.description, forKey: .lastWriteError)
        try container.encode(loops, forKey: .loops)
    }

    /// The statistics as JSON: UTF-8, indented, keys sorted, a line feed at the end.
    public func jsonData() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Counts, finite numbers and strings: none of them can fail.
        guard let data = try? encoder.encode(self) else { return [] }
        return [UInt8](data) + [UInt8(ascii: "\n")]
    }
}

private func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1_000_000_000 }
