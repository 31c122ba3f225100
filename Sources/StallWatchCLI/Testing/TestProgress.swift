/// The tests that a run has begun and not finished, as its output tells.
///
/// It knows the lines of Swift Testing and of XCTest. Lines of other tools are progress without names.
struct TestProgress: Equatable {
    /// A test that has begun.
    struct Running: Equatable {
        var name: String
        /// When it began, in monotonic nanoseconds.
        var began: UInt64
    }

    /// The tests that have begun and not ended, in the order of their beginnings.
    private(set) var running: [Running] = []
    /// Whether any test has begun.
    private(set) var hasBegun = false

    /// Takes in a line of the output.
    mutating func read(_ line: some StringProtocol, at time: UInt64) {
        guard let event = Self.event(line) else { return }
        switch event {
        case .began(let name):
            hasBegun = true
            running.append(Running(name: name, began: time))
        case .ended(let name):
            if let index = running.firstIndex(where: { $0.name == name }) { running.remove(at: index) }
        }
    }

    private enum Event {
        case began(String), ended(String)
    }

    private static func event(_ line: some StringProtocol) -> Event? {
        // Swift Testing begins a line with a symbol, in color if it writes to a terminal.
        guard let start = line.firstRange(of: "Test ") else { return nil }
        let isAtStart = !line[..<start.lowerBound].contains { $0.isASCII && $0.isLetter && $0 != "m" }
        guard isAtStart else { return nil }
        let text = line[start.upperBound...]
        if text.hasPrefix("Case '") {
            // XCTest: Test Case 'Suite.test' started at …, or passed, failed, skipped (1.0 seconds).
            let rest = text.dropFirst("Case '".count)
            guard let end = rest.lastIndex(of: "'") else { return nil }
            let name = String(rest[..<end])
            return rest[end...].hasPrefix("' started") ? .began(name) : .ended(name)
        }
        guard !text.hasPrefix("run "), !text.hasPrefix("case "), !text.hasPrefix("Suite ") else { return nil }
        if text.hasSuffix(" started.") { return .began(String(text.dropLast(" started.".count))) }
        for word in [" passed after ", " failed after ", " skipped"] {
            if let range = text.ranges(of: word).last { return .ended(name(String(text[..<range.lowerBound]))) }
        }
        return nil
    }

    /// The name without the count of its arguments: `name` in "name with 3 test cases".
    private static func name(_ text: String) -> String {
        guard let range = text.ranges(of: " with ").last, text[range.upperBound...].contains("test case") else {
            return text
        }
        return String(text[..<range.lowerBound])
    }
}
