import LinuxSupport
import Glibc

/// Finds the new and changed reports in a directory.
///
/// Polls instead of using inotify(7), which does not see changes by other machines on a shared file system. Writing or
/// replacing a report changes the directory's time, so an idle poll costs one stat(2).
struct DirectoryWatch {
    /// A report's file as of the last read.
    private struct Seen {
        var changedAt: Int
        var size: Int
        var identity: [UInt64]
    }

    /// File times advance with the kernel's clock tick, at most 10 ms: within that time after a poll, the directory may
    /// change again without a new time.
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
    /// A directory that has vanished has none; it may reappear.
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

    /// Makes the next call of ``changes()`` look at every file, whatever the directory's time says.
    mutating func rescan() { lookedAt = nil }

    /// Whether the directory had a report with this name at the last call of ``changes()``.
    func contains(_ name: String) -> Bool { seen[name] != nil }

    private func names() -> [String] { (directoryEntries(path) ?? []).map(\.name) }
}

/// CLOCK_REALTIME in nanoseconds.
func wallClock() -> Int {
    Int(clamping: wallClockNow())
}
