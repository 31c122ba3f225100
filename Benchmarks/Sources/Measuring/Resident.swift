import Foundation

/// The resident memory of this process.
package enum Resident: String, CaseIterable {
    case all = "Rss:"
    /// Memory without a file.
    case anonymous = "Anonymous:"
    /// The peak.
    case most = "VmHWM:"

    /// The amount in megabytes of a million bytes.
    ///
    /// smaps_rollup counts the pages. Only status has the peak; its sums are kept per processor and may be off by some
    /// hundred kilobytes (proc_pid_smaps(5), proc_pid_statm(5)).
    package var megabytes: Double {
        let file = self == .most ? "/proc/self/status" : "/proc/self/smaps_rollup"
        let lines = (try? String(contentsOfFile: file, encoding: .utf8))?.split(separator: "\n")
        let kilobytes = lines?.first { $0.hasPrefix(rawValue) }.flatMap { Double($0.filter(\.isNumber)) }
        return (kilobytes ?? 0) * 1024 / 1e6
    }
}

/// Prints a line with all three amounts.
package func printResident(_ when: String) {
    print(([when] + Resident.allCases.map { $0.megabytes.digits(3) }).joined(separator: ":"))
}
