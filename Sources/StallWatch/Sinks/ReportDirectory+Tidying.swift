import StallReports
import LinuxSupport
import Glibc
import Synchronization

/// How much a report directory may hold.
public struct ReportQuota: Sendable, Equatable {
    /// Reports at most; at least 1.
    public var reports: Int
    /// Bytes at most, over all reports; at least 1 MiB.
    public var bytes: Int

    /// Makes a quota.
    ///
    /// By default 1,000 reports and 128 MiB: a report is some tens of kilobytes.
    public init(reports: Int = 1_000, bytes: Int = 128 << 20) {
        self.reports = reports
        self.bytes = bytes
    }
}

/// The reports that monitors of this process are writing just now: their files are nobody's to tidy up.
enum OpenReports {
    private static let ids = Mutex<Set<String>>([])

    static func insert(_ id: String) { ids.withLock { _ = $0.insert(id) } }
    static func remove(_ id: String) { ids.withLock { _ = $0.remove(id) } }
    static func contains(_ id: String) -> Bool { ids.withLock { $0.contains(id) } }
}

extension ReportDirectory {
    /// Ends what processes that are gone have left: their temporary files go, and their ongoing reports become
    /// abandoned.
    ///
    /// Returns these.
    ///
    /// A process on another host or in another pid namespace looks gone from here. If it is not, its next sample or the
    /// stall's end puts its own state back.
    func recover() -> [StallReport] {
        withLock {
            for name in names() where isLeftover(name) || isEmptyReport(name) {
                unlink(path + "/" + name)
            }
            return names().filter(StallReport.isFileName).sorted().compactMap { name in
                guard var report = openReport(name), isGone(report) else { return nil }
                report.state = .abandoned
                // What cannot be written now is found again at the next start.
                guard (try? write(report)) != nil else { return nil }
                return report
            }
        }
    }

    /// Removes the oldest reports until the directory is inside its quota.
    ///
    /// Those of stalls that still last stay. Returns how many were removed.
    func enforce(_ quota: ReportQuota) -> Int {
        struct File {
            var name: String
            var size: Int
        }
        var files: [File] = names().filter(StallReport.isFileName).sorted().compactMap { name in
            guard let status = FileStatus(path: path + "/" + name), status.isRegular else { return nil }
            return File(name: name, size: status.size)
        }
        var bytes = files.reduce(0) { $0 + $1.size }
        var count = files.count
        var removed = 0
        while count > quota.reports || bytes > quota.bytes, !files.isEmpty {
            let oldest = files.removeFirst()
            if let report = openReport(oldest.name), !isGone(report) { continue }
            guard unlink(path + "/" + oldest.name) == 0 else { continue }
            count -= 1
            bytes -= oldest.size
            removed += 1
        }
        return removed
    }

    /// The report in a file, if it is of a stall that was ongoing when it was written.
    private func openReport(_ name: String) -> StallReport? {
        // Keys are sorted, so the state stands near the end: closed reports, nearly all of them, are not read as a whole.
        guard let tail = AtomicFile.tail(path + "/" + name, count: 1024),
            String(decoding: tail, as: UTF8.self).contains("\"\(StallReport.State.ongoing.rawValue)\""),
            let bytes = AtomicFile.read(path + "/" + name, limit: StallReport.maximumBytes),
            let report = try? StallReport(jsonData: bytes), report.state == .ongoing,
            report.fileName == name
        else { return nil }
        return report
    }

    /// Whether nobody follows an ongoing report any more.
    private func isGone(_ report: StallReport) -> Bool {
        guard let process = ProcessIdentity(report.process) else { return false }
        // This process itself may have replaced its program with execve(2), which keeps both pid and start time.
        return process == owner ? !OpenReports.contains(report.id) : !process.isAlive
    }

    /// Whether a file is a temporary one of a process that is gone.
    private func isLeftover(_ name: String) -> Bool {
        guard name.hasPrefix(".stall-"), name.hasSuffix(Self.temporarySuffix),
            let mark = name.dropLast(Self.temporarySuffix.count).lastIndex(of: "."),
            let process = ProcessIdentity(
                String(name[name.index(after: mark)...].dropLast(Self.temporarySuffix.count))
            )
        else { return false }
        return process != owner && !process.isAlive
    }

    /// Whether a power failure has left nothing of a report but its name.
    private func isEmptyReport(_ name: String) -> Bool {
        StallReport.isFileName(name)
            && FileStatus(path: path + "/" + name).map { $0.isRegular && $0.size == 0 } ?? false
    }

    private func names() -> [String] { (directoryEntries(path) ?? []).map(\.name) }

    /// Keeps two processes that start at once from both recovering the same reports.
    ///
    /// Waits half a second at most: the lock may be held by a process that is stopped, and a file system may have no
    /// locks.
    private func withLock<Result>(_ body: () -> Result) -> Result {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return body() }
        defer { close(descriptor) }
        for _ in 0..<50 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK { break }
            usleep(10_000)
        }
        return body()
    }
}
