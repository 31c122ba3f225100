import Foundation

/// A function's places in a source file, Swift's or C's.
enum SourceFunction {
    /// Whether `line` of the file at `path` lies in a function whose name is `function`'s, as reports write it.
    static func contains(_ line: Int, of function: String, in path: String) -> Bool {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return false }
        return contains(line, of: function, inText: text)
    }

    static func contains(_ line: Int, of function: String, inText text: String) -> Bool {
        let name = baseName(of: function)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.indices.contains { first in
            guard declares(name, lines[first]) else { return false }
            let end = String(lines[first].prefix { $0 == " " }) + "}"
            let last = lines[first...].firstIndex { $0 == end } ?? first
            return (first + 1...last + 1).contains(line)
        }
    }

    /// `acquire` for `PthreadLock.acquire(within:)`.
    private static func baseName(of function: String) -> Substring {
        let path = function.prefix { $0 != "(" && $0 != "<" }
        return path.split(separator: " ").last?.split(separator: ".").last ?? path
    }

    /// Whether the line begins a declaration: in C, one that is not indented and does not end there.
    private static func declares(_ name: Substring, _ line: Substring) -> Bool {
        if line.contains("func \(name)(") || line.contains("func \(name)<") { return true }
        guard let first = line.first, first.isLetter, !line.hasSuffix(";") else { return false }
        return line.contains(" \(name)(") || line.contains("*\(name)(")
    }
}
