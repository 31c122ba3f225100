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
