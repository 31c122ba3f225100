import CDemo
import Foundation
import Glibc

/// Evicts the pages of the program's mapped files from memory, as the kernel does when memory is short.
///
/// The next code has to read them again, as on a machine that is out of memory. Needs Linux 5.4 and the right to write the
/// files.
enum ColdStart {
    /// Returns the read-only mappings of files in the text of /proc/self/maps (proc_pid_maps(5)).
    static func fileMappings(in maps: String) -> [Range<UInt64>] {
        maps.split(separator: "\n").compactMap { line in
            // 7f01c2000000-7f01c2021000 r-xp 00000000 08:02 173521   /usr/lib/libc.so.6
            let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
            guard fields.count == 6, fields[5].drop(while: { $0 == " " }).hasPrefix("/"), !fields[1].contains("w")
            else {
                return nil
            }
            let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
        }
    }

    /// Evicts the pages, and then makes the main loop turn once for each kind of callout.
    ///
    /// So the time that the loop's own code takes to come back is no part of the stall that a scenario measures.
    ///
    /// - Returns: Whether the kernel supports it.
    static func prepare() async -> Bool {
        let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
        var isDone = false
        for mapping in fileMappings(in: maps)
        where demo_page_out(mapping.lowerBound, mapping.upperBound - mapping.lowerBound) {
            isDone = true
        }
        for callout in MainLoop.callouts { _ = await callout {} }
        return isDone
    }

    /// Returns the number of page faults of the process that waited for a disk.
    static func majorFaults() -> Int {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return Int(usage.ru_majflt)
    }
}
