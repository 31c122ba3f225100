import CDemo
import Foundation
import Glibc

/// Takes the program's code and its files' other pages out of memory, as the kernel does when memory is short.
///
/// Whatever runs next has to read them again: that is what a stall looks like on a machine that is out of memory, without
/// taking it from others. Needs no right but that to write the files, and Linux 5.4.
enum ColdStart {
    /// The mappings of files that hold nothing but what is in the file, in the text of /proc/self/maps (proc_pid_maps(5)).
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

    /// Does it, and lets the main loop turn once in each way: what its own code takes to come back is no part of the stall that
    /// a scenario measures.
    ///
    /// Returns whether the kernel knows how to.
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

    /// How many page faults of the process had to wait for a disk so far.
    static func majorFaults() -> Int {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return Int(usage.ru_majflt)
    }
}
