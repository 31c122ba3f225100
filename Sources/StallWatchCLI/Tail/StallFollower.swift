import Glibc
import LinuxSupport
import StallReports
import TextOutput

/// Follows stalls from report to report and returns each event once.
struct StallFollower {
    enum Event: String, Encodable, Sendable {
        case began
        case ended
        /// Its end was not observed: the monitor stopped, or the next monitor found the report open.
        case abandoned
        /// Its process is gone, and the report still says ongoing.
        case died
    }

    private(set) var ongoing: [String: ReportSummary] = [:]
    /// The last event of each stall, so that a report that is only rewritten (with names) gives no new event.
    private var reported: [String: Event] = [:]
    /// The most ids in memory; over it, all but the ongoing ones are dropped.
    private static let maximumReported = 100_000

    mutating func skip(_ report: ReportSummary) { reported[report.id] = Self.event(of: report) }

    mutating func update(with report: ReportSummary) -> Event? {
        let event = Self.event(of: report)
        // The process may still run, in another pid namespace. Its death is not reported twice, also when the next
        // monitor finishes the report.
        if event != .ended, reported[report.id] == .died { return nil }
        ongoing[report.id] = event == .began ? report : nil
        guard reported[report.id] != event else { return nil }
        if reported.count > Self.maximumReported { reported = reported.filter { ongoing[$0.key] != nil } }
        reported[report.id] = event
        return event
    }

    mutating func dead(isGone: (ReportSummary) -> Bool) -> [ReportSummary] { end(with: .died, where: isGone) }

    /// Ends the stalls whose files are gone: a repeat's is removed when the next one like it ends, maybe before a poll.
    mutating func lost(isLost: (ReportSummary) -> Bool) -> [ReportSummary] { end(with: .abandoned, where: isLost) }

    private mutating func end(with event: Event, where isOver: (ReportSummary) -> Bool) -> [ReportSummary] {
        let over = ongoing.values.filter(isOver).sorted { $0.startedAt < $1.startedAt }
        for report in over {
            ongoing[report.id] = nil
            reported[report.id] = event
        }
        return over
    }

    private static func event(of report: ReportSummary) -> Event {
        switch report.state {
        case .ongoing: .began
        case .abandoned: .abandoned
        default: .ended
        }
    }
}

struct FollowedDirectory {
    private var watch: DirectoryWatch
    private let filter: ReportFilter
    private var follower = StallFollower()
    /// The files of the ongoing stalls, by their ids.
    private var paths: [String: String] = [:]

    init(watch: DirectoryWatch, filter: ReportFilter) {
        self.watch = watch
        self.filter = filter
    }

    var ongoing: [ReportSummary] { follower.ongoing.values.sorted { $0.startedAt < $1.startedAt } }

    mutating func poll(_ printer: TailPrinter, skipsEnded: Bool = false) throws {
        for path in watch.changes() {
            guard let report = read(path) else { continue }
            if report.state == .ongoing { paths[report.id] = path }
            if skipsEnded, report.state != .ongoing {
                follower.skip(report)
            } else if filter.matches(report) || follower.ongoing[report.id] != nil,
                let event = follower.update(with: report)
            {
                // One that was shown when it began is also shown when it ends: its cause and its stacks change.
                try printer.print(event, report)
            }
        }
        paths = paths.filter { follower.ongoing[$0.key] != nil }
        let lost = Set(paths.filter { watch.hasLost($0.value) }.map(\.key))
        for report in follower.lost(isLost: { lost.contains($0.id) }) { try printer.print(.abandoned, report) }
        for report in follower.dead(isGone: \.processIsGone) { try printer.print(.died, report) }
    }

    private func read(_ path: String) -> ReportSummary? {
        do throws(UnreadableReport) {
            return try ReportSummary(json: FileReader.contents(of: path), .init(functions: filter.needsFunctions))
        } catch {
            // It may have been removed since the poll, to stay within the quota.
            guard FileStatus(path: path) != nil else { return nil }
            StandardError.write("Skipped \(path.printable): \(error.reason.printable)\n")
            return nil
        }
    }
}

/// Polls: inotify(7) does not see changes by other machines on a shared file system; an idle poll costs one stat(2).
struct DirectoryWatch {
    private struct Seen: Equatable {
        var changedAt: Int
        var size: Int
        var identity: [UInt64]
    }

    /// File times advance with the kernel's clock tick, at most 10 ms: within that time after a poll, the directory may
    /// change again without a new time.
    private static let clockStep = 20_000_000

    let path: String
    private var seen: [String: Seen] = [:]
    private var checkedAt: (changedAt: Int, isSettled: Bool)?

    init(path: String) throws(CommandFailure) {
        self.path = path
        guard let status = FileStatus(path: path) else { throw CommandFailure(reading: path, errno: errno) }
        guard status.isDirectory else { throw CommandFailure(reading: path, errno: ENOTDIR) }
        guard access(path, R_OK | X_OK) == 0 else { throw CommandFailure(reading: path, errno: errno) }
    }

    /// The paths of reports that are new or changed since the last call, by time; none while the directory is gone.
    mutating func changes() -> [String] {
        guard let status = FileStatus(path: path), status.isDirectory else {
            checkedAt = nil
            return []
        }
        if let checkedAt, checkedAt.changedAt == status.changedAt, checkedAt.isSettled { return [] }
        // A directory's time may be any number.
        let (age, overflows) = wallClock().subtractingReportingOverflow(status.changedAt)
        checkedAt = (status.changedAt, overflows || age > Self.clockStep)
        var changed: [String] = []
        var present: [String: Seen] = [:]
        for name in (directoryEntries(path) ?? []).map(\.name) where StallReport.isFileName(name) {
            guard let file = FileStatus(path: path + "/" + name), file.isRegular else { continue }
            let now = Seen(changedAt: file.changedAt, size: file.size, identity: file.identity)
            present[name] = now
            if seen[name] != now { changed.append(path + "/" + name) }
        }
        seen = present
        return changed.sorted()
    }

    /// Returns whether a report's file was gone at the last call, and is not there under the name of a repeat either.
    func hasLost(_ path: String) -> Bool {
        guard seen[fileName(path)] == nil, FileStatus(path: path) == nil else { return false }
        return FileStatus(path: "\(path.dropLast(".json".utf8.count))\(StallReport.newestSuffix)") == nil
    }
}

func wallClock() -> Int { Int(clamping: wallClockNow()) }
