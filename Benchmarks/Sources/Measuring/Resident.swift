import Foundation

/// Kilobytes that this process has in memory: VmRSS, or VmHWM for the most that it ever had (proc(5)).
package func residentKilobytes(_ field: String = "VmRSS") -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(field) }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
}
