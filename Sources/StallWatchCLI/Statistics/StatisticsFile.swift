import LinuxSupport
import Foundation
import Glibc

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

    struct Loop: Decodable, Sendable {
        var label: String
        var watchedSeconds: Double
        var turns: UInt64?
        var busySeconds: Double?
        var stalls: Int?
        var stallSeconds: Double?
        var thresholdMilliseconds: Double?
        var isThresholdAdaptive: Bool?
        var latency: [Bucket]?

        fileprivate var isSound: Bool {
            let times = [watchedSeconds, busySeconds ?? 0, stallSeconds ?? 0, thresholdMilliseconds ?? 0]
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

    /// - Throws: Why it is not a statistics file.
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

    /// Adds up the statistics files at `paths`.
    ///
    /// Other files in a directory are skipped; a named file has to be a statistics file.
    ///
    /// - Throws: A ``CommandFailure``.
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
                .noInput, "No statistics found. Name the file that the configuration sets with statisticsPath."
            )
        }
        return sum
    }
}
