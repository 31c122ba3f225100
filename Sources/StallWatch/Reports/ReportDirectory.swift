import Glibc

/// A directory with one JSON file a stall.
///
/// A file is replaced as a whole: written beside, flushed to the disk, renamed over the old one. A reader never sees half
/// a report, and what fails leaves the file as it was.
struct ReportDirectory: Sendable {
    /// The directory's path, as it was given.
    let path: String

    /// Makes the directory (and those above it) where it is missing, and checks that files can be made in it.
    ///
    /// - Throws: ``StallWatchError/Code/unwritableReports``.
    init(path: String) throws(StallWatchError) {
        guard !path.isEmpty else {
            throw StallWatchError(.unwritableReports, "the report directory's path is empty: name a directory")
        }
        self.path = path
        try Self.makeDirectories(path)
        let probe = path + "/.stallwatch-\(getpid()).tmp"
        try Self.write([], to: probe)
        unlink(probe)
    }

    /// The name of a report's file.
    ///
    /// Names sort by time.
    static func fileName(of report: StallReport) -> String {
        let time = report.startedAt.description.filter { $0 != "-" && $0 != ":" }
        return "stall-\(time)-\(report.id.suffix(12)).json"
    }

    /// Writes a report's file, or replaces it.
    ///
    /// Returns its path.
    ///
    /// - Throws: ``StallWatchError/Code/unwritableReports``; then nothing has changed.
    @discardableResult
    func write(_ report: StallReport) throws(StallWatchError) -> String {
        let file = path + "/" + Self.fileName(of: report)
        let temporary = path + "/." + Self.fileName(of: report) + ".tmp"
        try Self.write(report.jsonData(), to: temporary)
        guard rename(temporary, file) == 0 else {
            let reason = errno
            unlink(temporary)
            throw StallWatchError(.unwritableReports, "\(file) cannot be replaced", errno: reason)
        }
        Self.flushDirectory(path)
        return file
    }

    private static func makeDirectories(_ path: String) throws(StallWatchError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw StallWatchError(
                    .unwritableReports, "\(path) is a file: name a directory for the reports, or move the file away"
                )
            }
            return
        }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            try makeDirectories(String(path[..<slash]))
        }
        // Reports tell of paths and functions: for their owner only.
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw StallWatchError(
                .unwritableReports,
                "the report directory \(path) cannot be made: name another one, or make it writable", errno: errno
            )
        }
    }

    /// Writes a whole file and flushes it to the disk.
    ///
    /// What fails is taken away again.
    private static func write(_ bytes: [UInt8], to path: String) throws(StallWatchError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw StallWatchError(
                .unwritableReports, "\(path) cannot be made: make the directory writable or name another one",
                errno: errno
            )
        }
        var failure: Int32 = 0
        bytes.withUnsafeBytes { buffer in
            var done = 0
            while done < buffer.count, let base = buffer.baseAddress {
                let count = Glibc.write(descriptor, base + done, buffer.count - done)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    failure = count < 0 ? errno : EIO
                    return
                }
                done += count
            }
        }
        if failure == 0, fsync(descriptor) != 0 { failure = errno }
        // Errors of a delayed write may only show here (close(2)).
        if close(descriptor) != 0, failure == 0 { failure = errno }
        guard failure == 0 else {
            unlink(path)
            throw StallWatchError(
                .unwritableReports, "\(path) cannot be written: free some space or name another directory",
                errno: failure
            )
        }
    }

    /// Flushes the directory itself, so that the new name is on the disk too.
    ///
    /// Where a file system cannot, the report is still there for as long as the machine is up.
    private static func flushDirectory(_ path: String) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
