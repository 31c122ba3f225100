import StallReports
import LinuxSupport
import TextOutput

/// A report directory and the state of its stalls.
struct FollowedDirectory {
    private var watch: DirectoryWatch
    private let filter: ReportFilter
    private var follower = StallFollower()

    init(watch: DirectoryWatch, filter: ReportFilter) {
        self.watch = watch
        self.filter = filter
    }

    /// Ongoing stalls, oldest first.
    var ongoing: [ReportSummary] { follower.ongoing.values.sorted { $0.startedAt < $1.startedAt } }

    /// Reads the existing reports and prints only ongoing stalls.
    mutating func skipEnded(_ printer: TailPrinter) throws {
        for path in watch.changes() {
            guard let report = read(path) else { continue }
            if report.state == .ongoing { try take(report, printer) } else { follower.skip(report) }
        }
    }

    /// Prints the events since the last poll.
    mutating func poll(_ printer: TailPrinter) throws {
        for path in watch.changes() {
            if let report = read(path) { try take(report, printer) }
        }
        for report in follower.dead(isGone: \.processIsGone) { try printer.print(.died, report) }
    }

    private mutating func take(_ report: ReportSummary, _ printer: TailPrinter) throws {
        guard filter.matches(report), let event = follower.take(report) else { return }
        try printer.print(event, report)
    }

    /// Reads a report, or prints why it cannot be read.
    private func read(_ path: String) -> ReportSummary? {
        do throws(UnreadableReport) {
            return try ReportSummary(json: try FileReader.contents(of: path), functions: filter.needsFunctions)
        } catch {
            // It may have been removed since the poll, to stay within the quota.
            guard FileStatus(path: path) != nil else { return nil }
            StandardError.write("Skipped \(path.printable): \(error.reason.printable)\n")
            return nil
        }
    }
}

extension ReportSummary {
    /// Whether its process ran on this host since this boot, and has ended.
    ///
    /// The host name distinguishes most containers, whose processes have other ids here.
    fileprivate var processIsGone: Bool {
        guard let startTicks = process.startTicks, let bootID = process.bootID, bootID == Self.bootID,
            process.hostname == Self.hostname
        else { return false }
        return !ProcessIdentity(pid: process.pid, startTicks: startTicks, bootID: bootID).isAlive
    }

    private static let bootID = firstLine(of: "/proc/sys/kernel/random/boot_id")
    private static let hostname = firstLine(of: "/proc/sys/kernel/hostname")

    private static func firstLine(of path: String) -> String? {
        let bytes = try? FileReader(path: path).read(256)
        return bytes.map { String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) }
    }
}
