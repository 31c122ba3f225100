import Foundation
import Glibc
import LinuxSupport
import StallReports

struct StatisticsSum: Sendable {
    private(set) var files = 0
    private(set) var total = MonitorStatistics()

    /// Adds up the statistics files at `paths`; other files in a directory are skipped.
    init(of paths: [String]) throws(CommandFailure) {
        for path in paths {
            guard let status = FileStatus(path: path) else { throw CommandFailure(reading: path, errno: errno) }
            if status.isDirectory {
                for other in try ReportFiles(paths: [path]).others {
                    if let statistics = try? MonitorStatistics(path: other) { add(statistics) }
                }
            } else if access(path, R_OK) != 0 {
                throw CommandFailure(reading: path, errno: errno)
            } else {
                do throws(UnreadableReport) {
                    add(try MonitorStatistics(path: path))
                } catch {
                    throw CommandFailure(.faultyData, "\(path): \(error.reason).")
                }
            }
        }
        guard files > 0 else {
            throw CommandFailure(
                .nothing, "No statistics found. Name the file of the configuration's output .statistics(path)."
            )
        }
    }

    private mutating func add(_ statistics: MonitorStatistics) {
        files += 1
        total.add(statistics)
    }
}

extension MonitorStatistics {
    private static let maximumBytes = 16 << 20

    init(path: String) throws(UnreadableReport) {
        let bytes = try FileReader.contents(of: path, limit: Self.maximumBytes)
        guard let statistics = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else {
            throw UnreadableReport("this is not a statistics file")
        }
        self = statistics
    }

    /// How long the program was watched: as long as its longest watched loop.
    var watchedTime: Duration { loops.map(\.watchedTime).max() ?? .zero }
}
