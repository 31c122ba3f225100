/// How many reports blame the right function, and how many the right line.
struct BlameCounts: Equatable, Sendable {
    /// The number of judged scenarios that name a culprit.
    private(set) var total = 0
    /// The number of those whose report blames the function.
    private(set) var functions = 0
    /// The number of those whose report blames a line in that function.
    private(set) var lines = 0

    init(_ outcomes: [Outcome]) {
        for outcome in outcomes where outcome.result != .notAvailable && outcome.result != .inconclusive {
            guard let function = outcome.expected?.function else { continue }
            total += 1
            guard let own = outcome.own, own.function == function else { continue }
            functions += 1
            if let file = own.sourceFile, let line = own.line, SourceFunction.contains(line, of: function, in: file) {
                lines += 1
            }
        }
    }

    /// The counts in a line, without a line feed.
    var line: String { "\(functions) of \(total) functions, \(lines) of \(total) lines" }
}
