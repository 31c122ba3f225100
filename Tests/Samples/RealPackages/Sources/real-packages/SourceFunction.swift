import Foundation

/// A function's place in its source.
enum SourceFunction {
    /// The lines of the function or computed property `name` in the file at `path`: from the one that declares it to the
    /// closing brace with the same indentation.
    static func lines(of name: String, in path: String) -> ClosedRange<Int>? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // An initializer, a deinitializer and a subscript have no name of their own.
        let isNamed = !["init", "deinit", "subscript"].contains(name)
        let declarations =
            isNamed
            ? ["func \(name)(", "func \(name)<", "var \(name):", "int \(name)(", "long \(name)("]
            : ["    \(name)(", "    \(name) {"]
        // Of several, the last: a protocol declares its requirement before.
        guard
            let first = lines.lastIndex(where: { line in
                line.hasSuffix("{") && declarations.contains { line.contains($0) }
            })
        else { return nil }
        let indentation = lines[first].prefix { $0 == " " }
        guard let last = lines[first...].firstIndex(where: { $0 == indentation + "}" }) else { return nil }
        return first + 1...last + 1
    }
}
