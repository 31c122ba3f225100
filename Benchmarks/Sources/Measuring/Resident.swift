import Foundation

/// What this process has in memory.
package enum Resident: String, CaseIterable {
    case all = "Rss:"
    /// What no file has.
    case anonymous = "Anonymous:"
    /// The most that it ever had.
    case most = "VmHWM:"

    /// In megabytes, of a million bytes.
    ///
    /// smaps_rollup counts the pages; the sums in status, in which alone is what was once, are kept per processor and may be
    /// off by some hundred kilobytes (proc_pid_smaps(5), proc_pid_statm(5)).
    package var megabytes: Double {
        let file = self == .most ? "/proc/self/status" : "/proc/self/smaps_rollup"
        let lines = (try? String(contentsOfFile: file, encoding: .utf8))?.split(separator: "\n")
        let kilobytes = lines?.first { $0.hasPrefix(rawValue) }.flatMap { Double($0.filter(\.isNumber)) }
        return (kilobytes ?? 0) * 1024 / 1e6
    }
}

/// Prints a line with all three of them.
package func printResident(_ when: String) {
    print(([when] + Resident.allCases.map { $0.megabytes.digits(3) }).joined(separator: ":"))
}
