import CDemo
import Foundation

/// What the process has of what can leak, at one moment (proc_pid_status(5)).
struct ProcessHealth: Equatable, Sendable {
    /// Memory of its own that is in use, in kilobytes: RssAnon.
    ///
    /// Pages of files are left out: the kernel takes them away and gives them back as it likes.
    var memory: Int
    /// The same with the pages of files, in kilobytes: VmRSS.
    var resident: Int
    /// Open file descriptors.
    var descriptors: Int
    var threads: Int
    /// Lines of /proc/self/maps: files that stay mapped show here.
    var mappings: Int
}

extension ProcessHealth {
    /// Reads it from the text of /proc/self/status.
    ///
    /// `nil` where a line is missing.
    init?(status: String, descriptors: Int, mappings: Int) {
        var values: [Substring: Int] = [:]
        for line in status.split(separator: "\n") {
            let fields = line.split(whereSeparator: { $0 == ":" || $0 == "\t" || $0 == " " })
            if fields.count > 1, let value = Int(fields[1]) { values[fields[0]] = value }
        }
        guard let memory = values["RssAnon"], let resident = values["VmRSS"], let threads = values["Threads"] else {
            return nil
        }
        self.init(
            memory: memory, resident: resident, descriptors: descriptors, threads: threads, mappings: mappings
        )
    }

    /// The process as it is now, when malloc(3) has given back what it keeps of freed memory.
    ///
    /// glibc has up to eight arenas a processor, and each of the short-lived threads of a scenario's monitor may use another:
    /// hundreds of megabytes are kept that nobody uses.
    static func now() throws(DemoFailure) -> ProcessHealth {
        demo_give_back_free_memory()
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let maps = try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
            let health = ProcessHealth(
                status: status, descriptors: descriptors, mappings: maps.utf8.count { $0 == UInt8(ascii: "\n") }
            )
        else { throw DemoFailure(.systemError, "/proc/self cannot be read: a soak needs it to look for leaks") }
        return health
    }
}
