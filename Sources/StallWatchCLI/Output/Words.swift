import Glibc
import LinuxSupport
import StallReports
import TextOutput

func counted(_ count: Int, _ one: String, _ many: String) -> String { "\(count) \(count == 1 ? one : many)" }

/// `18 reports of 38 stalls`; `38 stalls` if each has a report.
func counted(reports: Int, ofStalls stalls: Int) -> String {
    let all = counted(stalls, "stall", "stalls")
    return reports == stalls ? all : "\(counted(reports, "report", "reports")) of \(all)"
}

/// A path without its last part; `.` for a bare name.
func directoryName(_ path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
}

/// An absolute path without symbolic links; `nil` if there is no such file.
func resolvedPath(_ path: String) -> String? {
    guard let resolved = realpath(pathBytes(path), nil) else { return nil }
    defer { free(resolved) }
    return pathText(cString: resolved)
}

extension Double {
    /// A duration in milliseconds as text: `812 ms`, `1.25 s`, `3 min 20 s`, `2 h 5 min`.
    var duration: String {
        let milliseconds = rounded()
        if self < 1, self > 0 { return "\(fixed(3)) ms" }
        if milliseconds < 1_000 { return "\(milliseconds.whole) ms" }
        if milliseconds < 60_000 { return "\((self / 1_000).fixed(2)) s" }
        guard self < 1e15 else { return "\(self) ms" }
        let seconds = Int((self / 1_000).rounded())
        if seconds < 3_600 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds / 3_600) h \(seconds % 3_600 / 60) min"
    }

    func fixed(_ digits: Int) -> String {
        let factor = (0..<digits).reduce(1) { value, _ in value * 10 }
        guard magnitude < 1e15, let scaled = Int(exactly: (self * Double(factor)).rounded()) else { return "\(self)" }
        let fraction = String(scaled.magnitude % UInt(factor))
        let sign = scaled < 0 ? "-" : ""
        let whole = "\(sign)\(scaled.magnitude / UInt(factor))"
        return digits == 0 ? whole : whole + "." + String(repeating: "0", count: digits - fraction.count) + fraction
    }

    /// Rounded to microseconds, as the reports' own numbers are.
    var toMicroseconds: Double { (self * 1_000).rounded() / 1_000 }
}

extension Timestamp {
    /// Hours, minutes and seconds (UTC).
    var timeOfDay: String {
        // 2026-11-21T08:00:00.123456Z
        String((description.split(separator: "T").last ?? "").prefix(8))
    }
}

extension String {
    var trimmed: String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        return String(drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}
