import StallReports
import LinuxSupport
import Glibc
import Synchronization

extension ReportDirectory {
    /// Cleans up after ended processes: removes their temporary files and marks their ongoing reports as abandoned.
    ///
    /// A process on another host or in another pid namespace seems to have ended. If it still runs, its next write
    /// restores the report's state.
    ///
    /// - Returns: The reports that are now abandoned, ordered by file name.
    func recover() -> [StallReport] {
        withLock {
            for name in names() where isLeftover(name) || isEmptyReport(name) {
                unlink(path + "/" + name)
            }
            return names().filter(StallReport.isFileName).sorted().compactMap { name in
                guard var report = openReport(name), isGone(report) else { return nil }
                report.state = .abandoned
                // A report that cannot be written now is recovered at the next start.
                guard (try? write(report)) != nil else { return nil }
                return report
            }
        }
    }

    /// Removes the oldest reports until the directory is within its quota.
    ///
    /// Reports of ongoing stalls stay.
    ///
    /// - Returns: The number of removed reports.
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

    /// Reads a report's file; `nil` if the report is not ongoing, or the file is invalid.
    private func openReport(_ name: String) -> StallReport? {
        // The keys are sorted, so the state is near the end. Reading the tail first avoids parsing finished reports.
        guard let tail = AtomicFile.tail(path + "/" + name, count: 1024),
            String(decoding: tail, as: UTF8.self).contains("\"\(StallReport.State.ongoing.rawValue)\""),
            let bytes = AtomicFile.read(path + "/" + name, limit: StallReport.maximumBytes),
            let report = try? StallReport(jsonData: bytes), report.state == .ongoing,
            report.fileName == name
        else { return nil }
        return report
    }

    /// Returns whether no monitor updates an ongoing report anymore.
    private func isGone(_ report: StallReport) -> Bool {
        guard let process = ProcessIdentity(report.process) else { return false }
        // This process may have replaced its own program with execve(2), which keeps both pid and start time.
        return process == owner ? !OpenReports.contains(report.id) : !process.isAlive
    }

    /// Returns whether a file is a temporary file of an ended process.
    private func isLeftover(_ name: String) -> Bool {
        guard name.hasPrefix(".stall-"), name.hasSuffix(Self.temporarySuffix),
            let mark = name.dropLast(Self.temporarySuffix.count).lastIndex(of: "."),
            let process = ProcessIdentity(
                String(name[name.index(after: mark)...].dropLast(Self.temporarySuffix.count))
            )
        else { return false }
        return process != owner && !process.isAlive
    }

    /// Returns whether a file is an empty report: a power failure can leave the name without the contents.
    private func isEmptyReport(_ name: String) -> Bool {
        StallReport.isFileName(name)
            && FileStatus(path: path + "/" + name).map { $0.isRegular && $0.size == 0 } ?? false
    }

    private func names() -> [String] { (directoryEntries(path) ?? []).map(\.name) }

    /// Prevents two processes that start at the same time from recovering the same reports.
    ///
    /// Waits at most half a second, then continues without the lock: its holder may be stopped, and a file system may
    /// have no locks.
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
