import StallReports
import LinuxSupport
import Glibc

/// A directory with one JSON file per stall.
///
/// A new state is written to a temporary file, flushed to disk, and renamed over the old file. So a reader never sees a
/// partial report, and a failed write leaves the old file unchanged. Several processes may share a directory: every
/// file name has the random part of its report's id, and the name of a temporary file identifies the process that
/// writes it.
struct ReportDirectory: Sendable {
    /// The directory's path, as passed to the initializer.
    let path: String
    /// The process identity in the names of this process's temporary files.
    let owner: ProcessIdentity
    /// Whether files in the directory can be flushed to the disk.
    let flush: FileFlush

    /// Creates the directory and its missing parents, and checks that files can be created in it.
    ///
    /// - Throws: ``StallWatchError/Code/unwritableReports``.
    init(path: String) throws(StallWatchError) {
        guard !path.isEmpty else {
            throw StallWatchError(.unwritableReports, "the report directory's path is empty: name a directory")
        }
        self.path = path
        // Without /proc, this process cannot check whether another one is alive, so it leaves the files of others
        // alone.
        owner = ProcessIdentity.current() ?? ProcessIdentity(pid: getpid(), startTicks: 0, bootID: "unknown")
        try makeDirectories(path)
        let probe = Self.temporaryPath(for: "stall-probe", in: path, of: owner)
        flush = try throwing(.unwritableReports) { () throws(SystemError) in try AtomicFile.write([], to: probe) }
        unlink(probe)
    }

    /// Writes or replaces a report's file.
    ///
    /// Creates the directory again if it is missing.
    ///
    /// - Parameter report: The report.
    /// - Returns: The file's path.
    /// - Throws: ``StallWatchError/Code/unwritableReports``; an existing file is then unchanged.
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
    /// A missing file is not an error.
    ///
    /// - Parameter name: The file's name.
    /// - Throws: ``StallWatchError/Code/unwritableReports``.
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

    /// Returns the path of a temporary file, which a later monitor removes if its owner has ended.
    static func temporaryPath(for name: String, in path: String, of owner: ProcessIdentity) -> String {
        "\(path)/.\(name)\(ownerMark)\(owner)\(temporarySuffix)"
    }

    static let ownerMark = "."
    static let temporarySuffix = ".tmp"

    /// Flushes the directory itself, so that the new name is on disk, too.
    ///
    /// Ignores errors: if the file system cannot flush a directory, the report still survives the process.
    private func flushNames() {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}

/// Creates a directory and its missing parents.
///
/// Only their owner has access, because reports contain paths and function names.
///
/// - Parameter path: The directory's path; an existing directory is not an error.
/// - Throws: ``StallWatchError/Code/unwritableReports``.
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
