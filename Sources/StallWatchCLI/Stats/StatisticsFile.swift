import Foundation
import Glibc
import LinuxSupport

/// A monitor's statistics file.
///
/// Every field is optional except the two that identify such a file: `loops` and `suppressed`.
struct StatisticsFile: Decodable, Sendable {
    var stalls: Int?
    var suppressed: [String: Int]
    var reportsDropped: Int?
    var reportsLost: Int?
    var reportsRemoved: Int?
    var reportsRecovered: Int?
    var failedWrites: Int?
    var lastWriteError: String?
    var loops: [Loop]

    /// How long the program was watched: as long as its longest watched loop.
    var watchedSeconds: Double { loops.map(\.watchedSeconds).max() ?? 0 }

    struct Loop: Decodable, Sendable {
        var label: String
        var watchedSeconds: Double
        var turns: UInt64?
        var busySeconds: Double?
        var stalls: Int?
        var stallSeconds: Double?
        var thresholdMilliseconds: Double?
        var latency: [Bucket]?

        fileprivate var isSound: Bool {
            let times: [Double] = [watchedSeconds, busySeconds ?? 0, stallSeconds ?? 0, thresholdMilliseconds ?? 0]
            guard times.allSatisfy({ $0 >= 0 && $0 < 1e12 }) else { return false }
            guard (stalls ?? 0) >= 0, (stalls ?? 0) < maximumCount, (turns ?? 0) < UInt64(maximumCount) else {
                return false
            }
            return (latency ?? []).allSatisfy { $0.turns < UInt64(maximumCount) && ($0.belowMicroseconds ?? 0) >= 0 }
        }
    }

    struct Bucket: Decodable, Sendable {
        var belowMicroseconds: Double?
        var turns: UInt64
    }

    /// A larger file is not a statistics file.
    static let maximumBytes = 16 << 20

    init(path: String) throws(UnreadableReport) {
        let bytes = try FileReader.contents(of: path, limit: Self.maximumBytes)
        guard let file = try? JSONDecoder().decode(StatisticsFile.self, from: Data(bytes)), file.isSound else {
            throw UnreadableReport("this is not a statistics file")
        }
        self = file
    }

    /// Whether no number is negative or so large that sums overflow.
    private var isSound: Bool {
        let counts = [stalls, reportsDropped, reportsLost, reportsRemoved, reportsRecovered, failedWrites]
        let isCount = { (count: Int) in count >= 0 && count < Self.maximumCount }
        return counts.compactMap(\.self).allSatisfy(isCount) && suppressed.values.allSatisfy(isCount)
            && loops.allSatisfy(\.isSound)
    }

    /// The bound of every count: 2^53, above which JSON's numbers are not exact.
    fileprivate static let maximumCount = 1 << 53

    /// Adds up the statistics files at `paths`; other files in a directory are skipped.
    static func sum(of paths: [String]) throws(CommandFailure) -> StatisticsSum {
        var sum = StatisticsSum()
        for path in paths {
            guard let status = FileStatus(path: path) else { throw CommandFailure(reading: path, errno: errno) }
            if status.isDirectory {
                for other in try ReportFiles(paths: [path]).others {
                    if let file = try? StatisticsFile(path: other) { sum.add(file) }
                }
            } else if access(path, R_OK) != 0 {
                throw CommandFailure(reading: path, errno: errno)
            } else {
                do throws(UnreadableReport) {
                    sum.add(try StatisticsFile(path: path))
                } catch {
                    throw CommandFailure(.faultyData, "\(path): \(error.reason).")
                }
            }
        }
        guard sum.files > 0 else {
            throw CommandFailure(
                .nothing, "No statistics found. Name the file that the configuration sets with statisticsPath."
            )
        }
        return sum
    }
}

/// Statistics files added up: the output of `stats --json`.
struct StatisticsSum: Sendable, Encodable {
    private(set) var files = 0
    private(set) var stalls = 0
    private(set) var suppressed: [String: Int] = [:]
    private(set) var reportsDropped = 0
    private(set) var reportsLost = 0
    private(set) var reportsRemoved = 0
    private(set) var reportsRecovered = 0
    private(set) var failedWrites = 0
    private(set) var lastWriteError: String?
    private(set) var loops: [Loop] = []

    /// The loops with the same label.
    struct Loop: Sendable, Encodable {
        let label: String
        fileprivate(set) var watchedSeconds = 0.0
        fileprivate(set) var turns: UInt64 = 0
        fileprivate(set) var busySeconds = 0.0
        fileprivate(set) var stalls = 0
        fileprivate(set) var stallSeconds = 0.0
        /// The threshold of the last file that has one.
        fileprivate(set) var thresholdMilliseconds: Double?
        /// Turns by upper bound, in microseconds.
        fileprivate(set) var latency: [Double: UInt64] = [:]
        /// Upper bounds, at most 12.5 % too large; `nil` without turns, and for what took over 4.8 hours.
        fileprivate(set) var p50Milliseconds: Double?
        fileprivate(set) var p99Milliseconds: Double?
        fileprivate(set) var maxMilliseconds: Double?

        private enum CodingKeys: CodingKey {
            case label, watchedSeconds, turns, busySeconds, stalls, stallSeconds, thresholdMilliseconds
            case p50Milliseconds, p99Milliseconds, maxMilliseconds
        }

        /// The bound that the fraction `quantile` of all turns stayed below; `nil` without turns, or over the largest bucket.
        fileprivate func milliseconds(quantile: Double) -> Double? {
            let all = latency.values.reduce(0, &+)
            guard all > 0 else { return nil }
            // Of a damaged file the sum may be near 2^64, which no Double below it stands for.
            let rank = max(UInt64(exactly: (quantile * Double(all)).rounded(.up)) ?? .max, 1)
            var seen: UInt64 = 0
            for (bound, turns) in latency.sorted(by: { $0.key < $1.key }) {
                seen &+= turns
                if seen >= rank { return bound.isFinite ? bound / 1_000 : nil }
            }
            return nil
        }
    }

    /// Problems with reports, in words, with their counts.
    var troubles: [(String, Int)] {
        [
            ("Reports that a slow reader missed", reportsDropped), ("Reports that a sink missed", reportsLost),
            ("Reports removed to stay inside a quota", reportsRemoved),
            ("Reports left by processes that were gone", reportsRecovered), ("Writes that failed", failedWrites),
        ]
    }

    mutating func add(_ file: StatisticsFile) {
        files += 1
        stalls &+= file.stalls ?? 0
        suppressed.merge(file.suppressed) { $0 &+ $1 }
        reportsDropped &+= file.reportsDropped ?? 0
        reportsLost &+= file.reportsLost ?? 0
        reportsRemoved &+= file.reportsRemoved ?? 0
        reportsRecovered &+= file.reportsRecovered ?? 0
        failedWrites &+= file.failedWrites ?? 0
        lastWriteError = file.lastWriteError ?? lastWriteError
        var loopsByLabel = Dictionary(uniqueKeysWithValues: loops.map { ($0.label, $0) })
        for loop in file.loops {
            var total = loopsByLabel[loop.label] ?? Loop(label: loop.label)
            total.watchedSeconds += loop.watchedSeconds
            total.turns &+= loop.turns ?? 0
            total.busySeconds += loop.busySeconds ?? 0
            total.stalls &+= loop.stalls ?? 0
            total.stallSeconds += loop.stallSeconds ?? 0
            total.thresholdMilliseconds = loop.thresholdMilliseconds ?? total.thresholdMilliseconds
            for bucket in loop.latency ?? [] {
                total.latency[bucket.belowMicroseconds ?? .infinity, default: 0] &+= bucket.turns
            }
            total.p50Milliseconds = total.milliseconds(quantile: 0.5)
            total.p99Milliseconds = total.milliseconds(quantile: 0.99)
            total.maxMilliseconds = total.milliseconds(quantile: 1)
            loopsByLabel[loop.label] = total
        }
        loops = loopsByLabel.values.sorted { $0.label < $1.label }
    }
}
