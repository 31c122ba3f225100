import LinuxSupport
internal import CLinux

/// Tells which file the pages come from that a thread waits for.
///
/// The kernel tells of a page fault's address only to those who asked before: a software event of perf_event_open(2), which
/// costs the thread less than a microsecond at a fault that went to a disk, and nothing at any other. It is asked for while
/// a turn is late and pages were seen to be waited for, and not before.
final class PageFaultWatch {
    private var watch: clinux_fault_watch
    /// The file of the last fault, if it was one's own and could be found.
    private(set) var file: String?

    /// Watches a thread of this process.
    ///
    /// `nil` where the system does not permit it (the sysctl kernel.perf_event_paranoid above 2), or might not.
    init?(thread: Int32) {
        var watch = clinux_fault_watch()
        // A filter may kill the process for a call that it does not list, as systemd's SystemCallFilter= does: not asked.
        guard let status = readSmallFile("/proc/thread-self/status"), !Self.hasFilter(status),
            clinux_watch_faults(thread, &watch)
        else { return nil }
        // Not before: an object whose properties are all set is deinitialized even if its initializer fails.
        self.watch = watch
    }

    /// Whether the thread of that /proc/<pid>/status (proc(5)) has a filter of system calls: seccomp's mode 2.
    static func hasFilter(_ status: String) -> Bool {
        var fields = ByteCursor(status)
        return fields.skip(pastLinePrefix: "Seccomp:") && fields.number() != 0
    }

    deinit { clinux_unwatch_faults(&watch) }

    /// Takes what has happened since the last look.
    ///
    /// To be called while the file is likely to be mapped still.
    func read() {
        var address: UInt64 = 0
        guard clinux_last_fault(&watch, &address), let maps = readSmallFile("/proc/self/maps", limit: Self.maximumMaps),
            let file = Self.file(at: address, in: maps)
        else { return }
        self.file = file
    }

    /// Of /proc/self/maps, how much is read: some 10,000 mappings.
    static let maximumMaps = 1 << 20

    /// The path of the mapping that `address` lies in, by the text of /proc/<pid>/maps (proc(5)).
    static func file(at address: UInt64, in maps: String) -> String? {
        for line in maps.utf8.split(separator: UInt8(ascii: "\n")) {
            // "begin-end perms offset device inode path", where the path may have spaces in it.
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
            guard let range = fields.first, let dash = range.firstIndex(of: UInt8(ascii: "-")),
                let begin = UInt64(Substring(range[..<dash]), radix: 16),
                let end = UInt64(Substring(range[range.index(after: dash)...]), radix: 16), begin <= address,
                address < end
            else { continue }
            let path = fields.count == 6 ? String(Substring(fields[5].drop { $0 == UInt8(ascii: " ") })) : ""
            return path.hasPrefix("/") ? path : nil
        }
        return nil
    }
}
