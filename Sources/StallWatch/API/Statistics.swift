internal import Foundation
import StallReports

extension StallMonitor {
    /// The counts of a monitor's work so far, and the state of its loops.
    public struct Statistics: Sendable, Equatable {
        /// The number of stalls that are over, reported or not, including those that were ongoing when the monitor
        /// stopped.
        public internal(set) var stalls = 0
        /// The number of suppressions by reason: a threshold was exceeded, but no report was made.
        ///
        /// Repeats and stalls over the limit per minute are also counted in ``stalls``. Suppressions for another reason
        /// are not, because they are no stalls.
        public internal(set) var suppressed = SuppressionCounts()
        /// The number of reports that a slow reader of ``StallMonitor/reports`` missed.
        public internal(set) var reportsDropped = 0
        /// The number of reports that a sink missed.
        ///
        /// A sink misses a report if more than 64 are waiting for it, or if the monitor stops before the sink can write
        /// the report.
        public internal(set) var reportsLost = 0
        /// The number of reports that were removed to keep a directory within its quota.
        public internal(set) var reportsRemoved = 0
        /// The number of reports that earlier processes left unfinished, found when the monitor started.
        public internal(set) var reportsRecovered = 0
        /// The number of failed attempts of a sink to take a report.
        public internal(set) var failedWrites = 0
        /// The number of operations that were not watched, because 10,000 others were in progress.
        public internal(set) var unwatchedOperations = 0
        /// The error of the last failed attempt.
        public internal(set) var lastWriteError: StallWatchError?
        /// The state of each watched loop, sorted by label.
        public internal(set) var loops: [LoopStatistics] = []
    }

    /// The state of a watched loop.
    public struct LoopStatistics: Sendable, Equatable, Encodable {
        /// The loop's label.
        public let label: String
        /// The time for which the loop has been watched, in seconds.
        public let watchedSeconds: Double
        /// The number of turns that are over.
        public let turns: UInt64
        /// The total duration of these turns, in seconds.
        public let busySeconds: Double
        /// The number of stalls that are over.
        public let stalls: Int
        /// The total duration of these stalls, in seconds.
        public let stallSeconds: Double
        /// The average number of stalls per hour.
        public let stallsPerHour: Double
        /// The average stalled time per hour, in seconds.
        public let stallSecondsPerHour: Double
        /// The number of turns that were stopped for a sample before the threshold, but did not become stalls.
        ///
        /// At most one in 1,000 turns, plus the first one.
        public let earlyStops: Int
        /// The duration from which a turn is a stall, in milliseconds; of several loops with the label, the longest.
        public let thresholdMilliseconds: Double
        /// The part of the watched time in which the loop was in a turn, 0 to 1; of several, the largest.
        ///
        /// `nil` for queues, pools and event loops, whose turns are the times until heartbeats have run.
        public let utilization: Double?
        /// The mean duration of these turns, in milliseconds; `nil` if there was no turn.
        public let meanMilliseconds: Double?
        /// The duration that half of the turns do not exceed, in milliseconds, at most 12.5 % too large.
        public let p50Milliseconds: Double?
        /// The duration that 90 % of the turns do not exceed, as ``p50Milliseconds``.
        public let p90Milliseconds: Double?
        /// The duration that 99 % of the turns do not exceed, as ``p50Milliseconds``.
        public let p99Milliseconds: Double?
        /// The duration of the longest turn, as ``p50Milliseconds``.
        public let longestMilliseconds: Double?
        /// The distribution of turn durations; buckets without turns are omitted.
        public let latency: [LatencyBucket]

        /// Returns an upper bound of the duration of a fraction of all turns.
        ///
        /// - Parameter quantile: The fraction: 0 to 1. Values outside are clamped.
        /// - Returns: The bound in microseconds, at most 12.5 % too large; `nil` if there was no turn, or if the bound
        ///   is over 4.8 hours.
        public func latencyMicroseconds(quantile: Double) -> Double? {
            let rank = UInt64((min(max(quantile, 0), 1) * Double(turns)).rounded(.up))
            var seen: UInt64 = 0
            return latency.first { bucket in
                seen &+= bucket.turns
                return seen >= max(rank, 1)
            }?.belowMicroseconds
        }
    }

    /// A group of turns of about the same duration.
    public struct LatencyBucket: Sendable, Equatable, Encodable {
        /// The bucket's upper bound in microseconds; `nil` in the bucket for turns over 4.8 hours.
        ///
        /// Every turn in the bucket took less than this, and at least 8/9 of it. In the bucket below 1.024 there is no
        /// lower bound.
        public let belowMicroseconds: Double?
        /// The number of turns in the bucket.
        public let turns: UInt64
    }
}

/// The name for the folders below `Monitor`.
typealias MonitorStatistics = StallMonitor.Statistics

extension StallMonitor.Statistics: Encodable {
    private enum Key: String, CodingKey {
        case stalls, suppressed, reportsDropped, reportsLost, reportsRemoved, reportsRecovered, failedWrites,
            unwatchedOperations, lastWriteError, loops
    }

    /// Encodes the statistics, with the error as its description.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(stalls, forKey: .stalls)
        try container.encode(suppressed, forKey: .suppressed)
        try container.encode(reportsDropped, forKey: .reportsDropped)
        try container.encode(reportsLost, forKey: .reportsLost)
        try container.encode(reportsRemoved, forKey: .reportsRemoved)
        try container.encode(reportsRecovered, forKey: .reportsRecovered)
        try container.encode(failedWrites, forKey: .failedWrites)
        try container.encode(unwatchedOperations, forKey: .unwatchedOperations)
        try container.encodeIfPresent(lastWriteError?.description, forKey: .lastWriteError)
        try container.encode(loops, forKey: .loops)
    }

    /// Returns the statistics as JSON.
    ///
    /// - Returns: UTF-8 text, indented, with sorted keys and a line feed at the end.
    public func jsonData() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Encoding cannot fail: the values are counts, finite numbers and strings.
        guard let data = try? encoder.encode(self) else { return [] }
        return [UInt8](data) + [UInt8(ascii: "\n")]
    }
}
