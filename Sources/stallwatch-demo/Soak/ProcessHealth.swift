import CDemo
import Foundation

/// The resources of the process that can leak, at one moment (proc_pid_status(5)).
struct ProcessHealth: Equatable, Sendable {
    /// The memory that malloc(3) has handed out and that has not been freed, in kilobytes.
    ///
    /// Resident memory would say something else. glibc has up to eight arenas per processor, and each short-lived thread of a
    /// scenario's monitor may use another one. The free end of such an arena is up to twice as long as the largest block that
    /// was ever freed, and malloc_trim(3) returns that of the first arena only: after 80 stalls 300 MB were free and 4 in use.
    var memory: Int
    /// The resident memory, in kilobytes: VmRSS.
    var resident: Int
    /// The number of open file descriptors.
    var descriptors: Int
    var threads: Int
    /// The number of lines of /proc/self/maps, which shows files that stay mapped.
    var mappings: Int
}

extension ProcessHealth {
    /// Reads the text of /proc/self/status.
    ///
    /// Fails if a line is missing.
    init?(status: String, memory: Int, descriptors: Int, mappings: Int) {
        var values: [Substring: Int] = [:]
        for line in status.split(separator: "\n") {
            let fields = line.split(whereSeparator: { $0 == ":" || $0 == "\t" || $0 == " " })
            if fields.count > 1, let value = Int(fields[1]) { values[fields[0]] = value }
        }
        guard let resident = values["VmRSS"], let threads = values["Threads"] else { return nil }
        self.init(
            memory: memory, resident: resident, descriptors: descriptors, threads: threads, mappings: mappings
        )
    }

    /// Returns the current resources.
    static func now() throws(DemoFailure) -> ProcessHealth {
        let memory = demo_allocated_bytes() / 1024
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let maps = try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
            let health = ProcessHealth(
                status: status, memory: memory, descriptors: descriptors,
                mappings: maps.utf8.count { $0 == UInt8(ascii: "\n") }
            )
        else { throw DemoFailure(.systemError, "/proc/self cannot be read: a soak needs it to detect leaks") }
        return health
    }
}
