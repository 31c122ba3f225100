import LinuxSupport
import Glibc

/// Finds the reports in a directory that are new or have changed.
///
/// By looking, not by inotify(7), which knows nothing of changes that another machine makes on a shared file system. A report
/// that is written or replaced changes its directory's time, so while nothing happens one stat(2) a look is all.
struct DirectoryWatch {
    /// A report's file as it was when it was read last.
    private struct Seen {
        var changedAt: Int
        var size: Int
        var identity: [UInt64]
    }

    /// File systems note times in steps of the kernel's clock tick, 10 ms at most: for that long after a look the
    /// directory may change again under the same time.
    private static let clockStep = 20_000_000

    let path: String
    private var seen: [String: Seen] = [:]
    private var lookedAt: (changedAt: Int, isSettled: Bool)?

    /// - Throws: A ``CommandFailure`` when it is not a directory that can be read.
    init(path: String) throws(CommandFailure) {
        self.path = path
        guard let status = FileStatus(path: path) else { throw CommandFailure(reading: path, errno: errno) }
        guard status.isDirectory else { throw CommandFailure(reading: path, errno: ENOTDIR) }
        guard access(path, R_OK | X_OK) == 0 else { throw CommandFailure(reading: path, errno: errno) }
    }

    /// The paths of reports that are new or have changed since the last call, by name and so by time.
    ///
    /// A directory that has vanished has none; it may come back.
    mutating func changes() -> [String] {
        guard let status = FileStatus(path: path), status.isDirectory else {
            lookedAt = nil
            return []
        }
        if let lookedAt, lookedAt.changedAt == status.changedAt, lookedAt.isSettled { return [] }
        lookedAt = (status.changedAt, wallClock() - status.changedAt > Self.clockStep)
        var changed: [String] = []
        var present: [String: Seen] = [:]
        for name in names() where ReportFiles.isReport(name) {
            guard let file = FileStatus(path: path + "/" + name), file.isRegular else { continue }
            let now = Seen(changedAt: file.changedAt, size: file.size, identity: file.identity)
            present[name] = now
            if let before = seen[name], before.changedAt == now.changedAt, before.size == now.size,
                before.identity == now.identity
            {
                continue
            }
            changed.append(path + "/" + name)
        }
        seen = present
        return changed.sorted()
    }

    private func names() -> [String] { (directoryEntries(path) ?? []).map(\.name) }
}

/// CLOCK_REALTIME in nanoseconds.
func wallClock() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}
