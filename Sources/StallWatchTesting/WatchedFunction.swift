import StallReports
import Testing

/// The function of a test, to recognize it on a stack.
struct WatchedFunction: Sendable, Equatable {
    /// The function's name with the types around it, such as `FileTests.readsSlowly()`.
    var name: String
    /// The path of its source file.
    var file: String

    init(name: String, file: String) {
        self.name = name
        self.file = file
    }

    /// The function of a test.
    init(_ test: Test) {
        // The id's text is Module.Suite/Nested/function()/File.swift:line:column; without a suite Module.function().
        let id = String(describing: test.id)
        self.init(id: id, function: test.name, file: test.sourceLocation.filePath)
    }

    /// The function that a test's id names.
    ///
    /// - Parameters:
    ///   - id: The id's text.
    ///   - function: The function's own name, taken if the id is of an unknown form.
    ///   - file: The path of the source file.
    init(id: String, function: String, file: String) {
        var parts = id.split(separator: "/").map(String.init)
        if parts.count > 1, parts.last?.contains(".swift:") == true { parts.removeLast() }
        if let first = parts.first, let dot = first.firstIndex(of: ".") {
            parts[0] = String(first[first.index(after: dot)...])
        }
        let isKnown = parts.last == function
        self.init(name: (isKnown ? parts.joined(separator: ".") : function).filter { $0 != "`" }, file: file)
    }

    /// Whether the frame is the function, or a closure or function in it.
    func contains(_ frame: StallReport.Frame) -> Bool {
        guard let function = frame.function, frame.file == nil || frame.file == file else { return false }
        let plain = function.filter { $0 != "`" }
        guard plain.hasSuffix(name) else { return false }
        let before = plain.dropLast(name.count).last
        return before == nil || before == " " || before == "."
    }
}
