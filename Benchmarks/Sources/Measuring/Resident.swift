import Foundation

/// Kilobytes that this process has in memory.
///
/// `field`: Of its status file (proc(5)): VmRSS for all, RssAnon for what no file has, VmHWM for the most that it ever had.
package func residentKilobytes(_ field: String = "VmRSS") -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(field) }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
}

/// Prints a line with all three of them.
package func printResident(_ when: String) {
    print("\(when):\(residentKilobytes()):\(residentKilobytes("RssAnon")):\(residentKilobytes("VmHWM"))")
}
