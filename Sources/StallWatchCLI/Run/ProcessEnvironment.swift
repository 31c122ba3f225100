import Glibc
import LinuxSupport

/// The variables of an environment as bytes, in their order, because a program receives them as they are.
struct ProcessEnvironment: Equatable {
    private(set) var entries: [[UInt8]]

    init(_ entries: [[UInt8]]) { self.entries = entries }

    static func current() -> ProcessEnvironment {
        var entries: [[UInt8]] = []
        var at = environ
        while let entry = at.pointee {
            entries.append(Array(UnsafeRawBufferPointer(start: entry, count: strlen(entry))))
            at += 1
        }
        return ProcessEnvironment(entries)
    }

    /// Passes the entries to a body as C strings, ended by a null pointer.
    func withCStrings<Result>(_ body: (inout [UnsafeMutablePointer<CChar>?]) -> Result) -> Result {
        var strings: [UnsafeMutablePointer<CChar>?] = entries.map { entry in
            // strdup(3) ends at a zero byte, of which an entry has none.
            let characters = entry.map { CChar(truncatingIfNeeded: $0) } + [0]
            return strdup(characters)
        }
        strings.append(nil)
        defer { for string in strings { free(string) } }
        return body(&strings)
    }

    mutating func remove(_ name: String) { entries.removeAll { $0.starts(with: "\(name)=".utf8) } }

    /// Sets a variable, whose value may be a path, in the place that it has, or at the end.
    mutating func set(_ name: String, _ value: String) {
        let entry = pathData("\(name)=\(value)")
        if let index = entries.firstIndex(where: { $0.starts(with: "\(name)=".utf8) }) {
            entries[index] = entry
        } else {
            entries.append(entry)
        }
    }
}
