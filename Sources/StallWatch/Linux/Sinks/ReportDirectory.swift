import Glibc
import LinuxSupport
import StallReports
import StallSymbols

/// A directory with one JSON file per stall.
///
/// A new state is written to a temporary file, flushed, and renamed over the old one: a reader never sees a partial
/// report, and a failed write changes nothing. Several processes may share a directory: a name has the random part of
/// its report's id, and that of a temporary file identifies the process that writes it.
struct ReportDirectory: Sendable {
    let path: String
    let owner: ProcessIdentity
    let flush: FileFlush

    /// Creates the directory and its missing parents, and checks that files can be created in it.
    init(path: String) throws(StallWatchError) {
        guard !path.isEmpty else {
            throw StallWatchError(.unwritableReports, "the report directory's path is empty: name a directory")
        }
        self.path = path
        // Without /proc nothing shows whether another process is alive, so the files of others are left alone.
        owner = ProcessIdentity.current() ?? ProcessIdentity(pid: getpid(), startTicks: 0, bootID: "unknown")
        try makeDirectories(path)
        let probe = Self.temporaryPath(for: "stall-probe", in: path, of: owner)
        flush = try throwing(.unwritableReports) { () throws(SystemError) in try AtomicFile.write([], to: probe) }
        unlink(probe)
    }

    /// Writes or replaces a report's file, also in a directory that is missing, and returns its path.
    @discardableResult
    func write(_ report: StallReport, to file: String? = nil) throws(StallWatchError) -> String {
        let name = file ?? report.fileName
        let bytes = report.jsonData()
        do {
            return try write(bytes, name)
        } catch  where error.errno == ENOENT {
            try makeDirectories(path)
            return try write(bytes, name)
        }
    }

    /// Gives the newest suppressed stall of a fingerprint, whose file has ``StallReport/newestSuffix``, its final name.
    func settle(_ name: String) {
        let file = path + "/" + name
        // A file that cannot be renamed is settled at the next start.
        rename(file, file.dropLast(StallReport.newestSuffix.utf8.count) + ".json")
    }

    func remove(_ name: String) throws(StallWatchError) {
        guard unlink(path + "/" + name) != 0, errno != ENOENT, errno != ENOTDIR else { return }
        throw StallWatchError(
            .unwritableReports, "\(path)/\(name) cannot be removed: make the directory writable", errno: errno
        )
    }

    private func write(_ bytes: [UInt8], _ name: String) throws(StallWatchError) -> String {
        let file = path + "/" + name
        let temporary = Self.temporaryPath(for: name, in: path, of: owner)
        // A busy disk may take long to flush. A file that replaces none is renamed before the flush: it then survives
        // the death of the process, and only a power failure during the flush can leave it empty.
        let isNew = access(file, F_OK) != 0
        try throwing(.unwritableReports) { () throws(SystemError) in
            _ = try AtomicFile.write(bytes, to: temporary) { isNew && rename(temporary, file) != 0 ? errno : 0 }
        }
        guard isNew || rename(temporary, file) == 0 else {
            let reason = errno
            unlink(temporary)
            throw StallWatchError(
                .unwritableReports, "\(file) cannot be replaced: make the directory writable", errno: reason
            )
        }
        flushNames()
        return file
    }

    /// Returns an unforeseeable path for a temporary file, which a later monitor removes if its owner has ended.
    static func temporaryPath(for name: String, in path: String, of owner: ProcessIdentity) -> String {
        let random = String(UInt64.random(in: .min ... .max), radix: 36)
        return "\(path)/.\(name).\(random).\(owner)\(temporarySuffix)"
    }

    static let temporarySuffix = ".tmp"

    private func flushNames() {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}

/// Creates a directory and its missing parents, which only their owner may access, unless it exists.
func makeDirectories(_ path: String) throws(StallWatchError) {
    if let status = FileStatus(path: path) {
        guard status.isDirectory else {
            throw StallWatchError(
                .unwritableReports, "\(path) is a file: name a directory for the reports, or move the file away"
            )
        }
        return
    }
    if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
        try makeDirectories(String(path[..<slash]))
    }
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
        throw StallWatchError(
            .unwritableReports,
            "the report directory \(path) cannot be created: name another one, or make its parent writable",
            errno: errno
        )
    }
}

extension ReportDirectory {
    /// Cleans up after ended processes: removes their temporary files and marks their ongoing reports as abandoned.
    ///
    /// A process on another host or in another pid namespace seems to have ended. If it still runs, its next write
    /// restores the report's state. Returns the reports that are now abandoned, ordered by file name.
    func recover() -> [StallReport] {
        withLock {
            for name in names() where isLeftover(name) || isEmptyReport(name) {
                unlink(path + "/" + name)
            }
            for name in names() where name.hasSuffix(StallReport.newestSuffix) {
                guard let bytes = AtomicFile.read(path + "/" + name, limit: StallReport.maximumBytes),
                    let report = try? StallReport(jsonData: bytes), isGone(report)
                else { continue }
                settle(name)
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

    /// Removes the oldest reports that are not ongoing until the directory is within its quota; returns their number.
    func enforce(_ quota: ReportQuota) -> Int {
        let files: [(name: String, size: Int)] = names().filter(StallReport.isFileName).sorted().compactMap { name in
            guard let status = FileStatus(path: path + "/" + name), status.isRegular else { return nil }
            return (name, status.size)
        }
        var bytes = files.reduce(0) { $0 + $1.size }
        var count = files.count
        for oldest in files where count > quota.reports || bytes > quota.bytes {
            if let report = openReport(oldest.name), !isGone(report) { continue }
            guard unlink(path + "/" + oldest.name) == 0 else { continue }
            count -= 1
            bytes -= oldest.size
        }
        return files.count - count
    }

    /// Reads a report's file; `nil` if the report is not ongoing, or the file is invalid.
    private func openReport(_ name: String) -> StallReport? {
        // The keys are sorted, so the state is near the end. Reading the tail first avoids parsing finished reports.
        guard let tail = AtomicFile.tail(path + "/" + name, count: 1024),
            String(decoding: tail, as: UTF8.self).contains("\"\(StallState.ongoing.rawValue)\""),
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

    private func isLeftover(_ name: String) -> Bool {
        let stem = name.dropLast(Self.temporarySuffix.count)
        guard name.hasPrefix(".stall-"), name.hasSuffix(Self.temporarySuffix), let mark = stem.lastIndex(of: "."),
            let process = ProcessIdentity(String(stem[mark...].dropFirst()))
        else { return false }
        return process != owner && !process.isAlive
    }

    /// Returns whether a file is an empty report: a power failure can leave the name without the contents.
    private func isEmptyReport(_ name: String) -> Bool {
        StallReport.isFileName(name)
            && FileStatus(path: path + "/" + name).map { $0.isRegular && $0.size == 0 } ?? false
    }

    private func names() -> [String] { (directoryEntries(path) ?? []).map(\.name) }

    /// Keeps two processes that start at the same time from recovering the same reports; waits at most half a second,
    /// as the lock's holder may be stopped, and a file system may have no locks.
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
