import Glibc

/// A program that takes the place of this process.
struct Replacement {
    var path: String
    /// The number of the last arguments of this process that are the program's name and its arguments.
    var argumentCount: Int
    var environment: ProcessEnvironment
    var signals: InheritedSignals

    /// Becomes the program, with this process's id, descriptors, terminal and current directory, or returns why not.
    func begin() -> StartFailure {
        // The bytes of this process's own arguments: as Swift strings, those that are not UTF-8 would change.
        let count = Int(CommandLine.argc)
        let first = count - min(argumentCount, count)
        var arguments = (first..<count).map { CommandLine.unsafeArgv[$0] } + [nil]
        return environment.withCStrings { entries in
            signals.restore()
            execve(path, &arguments, &entries)
            return StartFailure(starting: path, errno: errno)
        }
    }
}

/// The variables of an environment as bytes, in their order, because a program receives them as they are.
struct ProcessEnvironment: Equatable {
    /// The entries, `NAME=value`, without the zero bytes.
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
        var strings = entries.map { entry in
            entry.withUnsafeBufferPointer { bytes in
                // strndup(3) ends at a zero byte, of which an entry has none.
                bytes.withMemoryRebound(to: CChar.self) {
                    $0.baseAddress.map { strndup($0, bytes.count) } ?? strdup("")
                }
            }
        }
        strings.append(nil)
        defer { for string in strings { free(string) } }
        return body(&strings)
    }

    mutating func remove(_ name: String) { entries.removeAll { $0.starts(with: "\(name)=".utf8) } }

    /// Sets a variable in the place that it has, or at the end.
    mutating func set(_ name: String, _ value: String) {
        let entry = Array("\(name)=\(value)".utf8)
        if let index = entries.firstIndex(where: { $0.starts(with: "\(name)=".utf8) }) {
            entries[index] = entry
        } else {
            entries.append(entry)
        }
    }
}
