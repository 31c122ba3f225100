import StallReports
import LinuxSupport
import Glibc

/// A directory with one JSON file a stall.
///
/// A file is replaced as a whole: written beside, flushed to the disk, renamed over the old one. A reader never sees
/// half a report, and what fails leaves the file as it was. Several processes may share a directory: every file's name
/// has the random part of its report's id, and temporary files carry the process that writes them.
struct ReportDirectory: Sendable {
    /// The directory's path, as it was given.
    let path: String
    /// What this process's temporary files are called by.
    let owner: ProcessIdentity

    /// Makes the directory (and those above it) where it is missing, and checks that files can be made in it.
    ///
    /// - Throws: ``StallWatchError/Code/unwritableReports``.
    init(path: String) throws(StallWatchError) {
        guard !path.isEmpty else {
            throw StallWatchError(.unwritableReports, "the report directory's path is empty: name a directory")
        }
        self.path = path
        // Without /proc nothing tells whether another process lives, so no other one's files are touched.
        owner = ProcessIdentity.current() ?? ProcessIdentity(pid: getpid(), startTicks: 0, bootID: "unknown")
        try makeDirectories(path)
        let probe = temporaryPath(for: "stall-probe")
        try throwing(.unwritableReports) { () throws(SystemError) in try AtomicFile.write([], to: probe) }
        unlink(probe)
    }

    /// Writes a report's file, or replaces it.
    ///
    /// Returns its path.
    ///
    /// A directory that has vanished is made again.
    ///
    /// - Throws: ``StallWatchError/Code/unwritableReports``; then nothing has changed.
    @discardableResult
    func write(_ report: StallReport) throws(StallWatchError) -> String {
        let name = report.fileName
        let bytes = report.jsonData()
        do {
            return try write(bytes, name)
        } catch  where error.errno == ENOENT {
            try makeDirectories(path)
            return try write(bytes, name)
        }
    }

    /// Removes a report's file.
    ///
    /// That there is none is no error.
    ///
    /// - Throws: ``StallWatchError/Code/unwritableReports``.
    func remove(_ name: String) throws(StallWatchError) {
        guard unlink(path + "/" + name) != 0, errno != ENOENT, errno != ENOTDIR else { return }
        throw StallWatchError(.unwritableReports, "\(path)/\(name) cannot be removed", errno: errno)
    }

    private func write(_ bytes: [UInt8], _ name: String) throws(StallWatchError) -> String {
        let file = path + "/" + name
        let temporary = temporaryPath(for: name)
        // A busy disk may take long to flush. Where there is no older file to lose, the new one is shown at once: the death
        // of the process cannot take it back, and only a power failure within that time leaves an empty file.
        let isNew = access(file, F_OK) != 0
        try throwing(.unwritableReports) { () throws(SystemError) in
            try AtomicFile.write(bytes, to: temporary) { isNew && rename(temporary, file) != 0 ? errno : 0 }
        }
        guard isNew || rename(temporary, file) == 0 else {
            let reason = errno
            unlink(temporary)
            throw StallWatchError(.unwritableReports, "\(file) cannot be replaced", errno: reason)
        }
        flush()
        return file
    }

    private func temporaryPath(for name: String) -> String {
        "\(path)/.\(name)\(Self.ownerMark)\(owner)\(Self.temporarySuffix)"
    }

    static let ownerMark = "."
    static let temporarySuffix = ".tmp"

    /// Flushes the directory itself, so that the new name is on the disk too.
    ///
    /// Where a file system cannot, the report is still there for as long as the machine is up.
    private func flush() {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}

/// Makes a directory, and those above it, where they are missing; for their owner only, as reports tell of paths and
/// functions.
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
            "the report directory \(path) cannot be made: name another one, or make it writable", errno: errno
        )
    }
}
