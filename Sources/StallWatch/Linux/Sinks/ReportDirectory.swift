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
    let owner: ProcessIdentity
    let flush: FileFlush
    private let directory: FixedDirectory
    private let lock: MonitorLock

    var path: String { directory.path }

    /// Creates the directory and its missing parents, and checks that files can be created in it.
    init(path: String) throws(StallWatchError) {
        guard !path.isEmpty else {
            throw StallWatchError(.unwritableReports, "the report directory's path is empty: name a directory")
        }
        try makeDirectories(path)
        let (directory, owner) = (FixedDirectory(path), ProcessIdentity.writer)
        flush = try throwing(.unwritableReports) { () throws(SystemError) in try Self.probe(directory, owner) }
        (self.directory, self.owner) = (directory, owner)
        lock = MonitorLock(in: directory, of: owner)
    }

    /// Checks that a report can be written, for which a directory that is missing is made, as by ``write(_:to:)``.
    func check() throws(StallWatchError) {
        // As large as a report, which a full disk does not take.
        let bytes = [UInt8](repeating: 0, count: 64 << 10)
        try makingDirectory { () throws(SystemError) in _ = try Self.probe(directory, owner, bytes) }
    }

    /// Does something in the directory; makes that, and tries again, if it is missing.
    private func makingDirectory(_ body: () throws(SystemError) -> Void) throws(StallWatchError) {
        try directory.reopening(after: { () throws(StallWatchError) in try makeDirectories(path) }, body)
    }

    private static func probe(
        _ directory: FixedDirectory, _ owner: ProcessIdentity, _ bytes: [UInt8] = []
    ) throws(SystemError) -> FileFlush {
        let name = temporaryName(for: "stall-probe", of: owner)
        let flush = try AtomicFile.write(bytes, to: name, in: directory)
        try AtomicFile.remove(name, in: directory)
        return flush
    }

    /// Tells other processes that reports of this one are being updated, until ``unlock()``.
    func holdLock() { withStartLock { lock.hold() } }

    func unlock() { lock.release() }

    /// Writes or replaces a report's file, also in a directory that is missing, and returns its path.
    @discardableResult
    func write(_ report: StallReport, to file: String? = nil) throws(StallWatchError) -> String {
        let name = file ?? report.fileName
        let bytes = report.jsonData()
        try makingDirectory { () throws(SystemError) in try write(bytes, name) }
        return path + "/" + name
    }

    /// Writes the end of a stall whose final report was lost; what the file of the ongoing stall has stays.
    func end(_ times: StallReport) throws(StallWatchError) {
        var report = times
        if FileStatus(path: times.fileName, in: directory) != nil {
            guard let ongoing = openReport(times.fileName) else { return }
            report = ongoing
            (report.state, report.durationMilliseconds) = (times.state, times.durationMilliseconds)
        }
        try write(report)
    }

    /// Gives the newest suppressed stall of a fingerprint, whose file has ``StallReport/newestSuffix``, its final name.
    func settle(_ name: String) {
        let final = name.dropLast(StallReport.newestSuffix.utf8.count) + ".json"
        // A file that cannot be renamed is settled at the next start.
        try? AtomicFile.rename(name, to: String(final), in: directory)
    }

    func remove(_ name: String) throws(StallWatchError) {
        do throws(SystemError) {
            try AtomicFile.remove(name, in: directory)
        } catch  where error.errno != ENOENT && error.errno != ENOTDIR {
            throw StallWatchError(.unwritableReports, error)
        } catch {}
    }

    private func write(_ bytes: [UInt8], _ name: String) throws(SystemError) {
        let temporary = Self.temporaryName(for: name, of: owner)
        try AtomicFile.replace(name, in: directory, with: bytes, through: temporary)
        let names = KeptDescriptor(directory.open(".", O_RDONLY | O_DIRECTORY))
        fsync(names.usable)
        names.close()
    }

    /// Returns an unforeseeable name of a temporary file, which a later monitor removes if its owner has ended.
    static func temporaryName(for name: String, of owner: ProcessIdentity) -> String {
        AtomicFile.temporaryPath(for: ".\(name)", of: owner)
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
    guard mkdir(pathBytes(path), 0o700) == 0 || errno == EEXIST else {
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
    /// A process on another host counts as ended after a day without a write; if it still runs, its next write restores the
    /// report's state. Returns the reports that are now abandoned, ordered by file name.
    ///
    /// Of many reports only the newest ones are read: the first report of this process waits for it.
    func recover(newest: Int = .max) -> [StallReport] {
        withStartLock {
            let names = names(in: directory)
            let locks = MonitorLock.Names(among: names)
            // Their locks tell which processes are gone, so those files are removed last.
            let leftovers = Set(names.filter { isLeftover($0, locks) || isEmptyReport($0) })
            defer { for name in leftovers { try? AtomicFile.remove(name, in: directory) } }
            for name in names where name.hasSuffix(StallReport.newestSuffix) {
                guard let bytes = AtomicFile.read(name, in: directory, limit: StallReport.maximumBytes),
                    let report = try? StallReport(jsonData: bytes), isGone(report, name, locks)
                else { continue }
                settle(name)
            }
            let reports = names.filter { StallReport.isFileName($0) && !leftovers.contains($0) }
            return reports.sorted().suffix(newest).compactMap { name in
                guard var report = openReport(name), isGone(report, name, locks) else { return nil }
                report.state = .abandoned
                // A report that cannot be written now is recovered at the next start.
                guard (try? write(report)) != nil else { return nil }
                return report
            }
        }
    }

    /// What a directory has left of its quota; negative beyond it.
    struct Room {
        var reports = 0
        var bytes = 0
        /// The number of monitors that share it.
        var monitors = 1
        /// The number of reports that were removed for it.
        var removed = 0
    }

    func size(of name: String) -> Int? { FileStatus(path: name, in: directory)?.size }

    /// The most reports that are removed at once, for which a new one waits; what is left goes with the next one.
    static let maximumRemoved = 1_000

    /// Removes the oldest reports that are not ongoing until the directory is within its quota; returns what is left of it.
    func enforce(_ quota: ReportQuota) -> Room {
        let names = names(in: directory)
        let locks = MonitorLock.Names(among: names)
        let files: [(name: String, size: Int)] = names.filter(StallReport.isFileName).sorted().compactMap { name in
            guard let status = FileStatus(path: name, in: directory), status.isRegular else { return nil }
            return (name, status.size)
        }
        var bytes = files.reduce(0) { $0 + $1.size }
        var count = files.count
        for oldest in files where count > quota.reports || bytes > quota.bytes {
            guard files.count - count < Self.maximumRemoved else { break }
            if let report = openReport(oldest.name), !isGone(report, oldest.name, locks) { continue }
            guard (try? AtomicFile.remove(oldest.name, in: directory)) != nil else { continue }
            count -= 1
            bytes -= oldest.size
        }
        return Room(
            reports: quota.reports - count, bytes: quota.bytes - bytes, monitors: max(locks.count, 1),
            removed: files.count - count)
    }

    /// Reads a report's file; `nil` if the report is not ongoing, or the file is invalid.
    private func openReport(_ name: String) -> StallReport? {
        // The keys are sorted, so the state is near the end. Reading the tail first avoids parsing finished reports.
        guard let tail = AtomicFile.tail(name, in: directory, count: 1024),
            String(decoding: tail, as: UTF8.self).contains("\"\(StallState.ongoing.rawValue)\""),
            let bytes = AtomicFile.read(name, in: directory, limit: StallReport.maximumBytes),
            let report = try? StallReport(jsonData: bytes), report.state == .ongoing,
            report.fileName == name
        else { return nil }
        return report
    }

    /// Returns whether no monitor updates an ongoing report anymore.
    private func isGone(_ report: StallReport, _ name: String, _ locks: MonitorLock.Names) -> Bool {
        let process = process(of: report, locks)
        // This process may have replaced its own program with execve(2), which keeps both pid and start time.
        return process == owner ? !OpenReports.contains(report.id) : isGone(process, name, locks)
    }

    /// Returns the process of a report, with the host's name that its lock has: a redaction may have removed it.
    private func process(of report: StallReport, _ locks: MonitorLock.Names) -> ProcessIdentity? {
        guard let named = ProcessIdentity(report.process) else { return nil }
        return named.withoutHost == owner.withoutHost ? owner : locks.process(like: named) ?? named
    }

    /// Returns the process that a temporary file's name identifies.
    static func writer(of name: String) -> ProcessIdentity? {
        let stem = name.dropLast(AtomicFile.temporarySuffix.count)
        guard name.hasSuffix(AtomicFile.temporarySuffix), let mark = stem.lastIndex(of: ".") else { return nil }
        return ProcessIdentity(String(stem[mark...].dropFirst()))
    }

    private func isGone(_ process: ProcessIdentity?, _ name: String, _ locks: MonitorLock.Names) -> Bool {
        let changedAt = FileStatus(path: name, in: directory).map { UInt64(max($0.changedAt, 0)) } ?? .max
        let now = wallClockNow()
        return MonitorLock.isGone(
            process, seenFrom: owner, isAlive: process?.isAlive,
            lock: process.map { locks.state(of: $0, in: directory) } ?? .unknown,
            silence: now - min(changedAt, now))
    }

    private func isLeftover(_ name: String, _ locks: MonitorLock.Names) -> Bool {
        guard name.hasPrefix(".stall-"), let process = Self.writer(of: name) else { return false }
        return process != owner && isGone(process, name, locks)
    }

    /// Returns whether a file is an empty report: a power failure can leave the name without the contents.
    private func isEmptyReport(_ name: String) -> Bool {
        StallReport.isFileName(name)
            && FileStatus(path: name, in: directory).map { $0.isRegular && $0.size == 0 } ?? false
    }

    /// Keeps two processes that start at the same time from recovering the same reports, and one that has just created its
    /// lock from counting as gone; waits at most half a second, as the lock's holder may be stopped, and a file system may
    /// have no locks.
    private func withStartLock<Result>(_ body: () -> Result) -> Result {
        let names = KeptDescriptor(directory.open(".", O_RDONLY | O_DIRECTORY))
        defer {
            // A child that was forked meanwhile has it open, too.
            flock(names.usable, LOCK_UN)
            names.close()
        }
        for _ in 0..<50 {
            if flock(names.usable, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK { break }
            usleep(10_000)
        }
        return body()
    }
}
