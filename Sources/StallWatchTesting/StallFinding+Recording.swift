import StallReports
import StallSymbols
import Testing

extension StallFinding {
    /// Records the stall as an issue of the current test, with its report and its stacks as attachments.
    ///
    /// - Parameter location: Where to record it if the function to inspect first is not in the package.
    func record(elsewhere location: SourceLocation) {
        guard !isExcused else { return }
        record(sentence, at: report.culpritLocation ?? location)
    }

    /// Records the stall as an issue of the test run.
    ///
    /// Called on a thread of the monitor, where no test is current. Swift Testing then records it once for the run and once
    /// for each group of `.serialized` tests that runs at this time.
    ///
    /// - Parameters:
    ///   - tests: The tests that the stall may belong to.
    ///   - location: Where to record it if the function to inspect first is not in the package.
    func recordForRun(tests: [String], elsewhere location: SourceLocation?) {
        guard !isExcused else { return }
        guard let location = report.culpritLocation ?? location else { return }
        let names = Set(tests).sorted().joined(separator: ", ")
        record(
            "\(sentence) It belongs to one of the tests that ran then (\(names)), but no stack shows to which: run them one "
                + "after another to know.",
            at: location)
    }

    private func record(_ text: String, at location: SourceLocation) {
        Issue.record(Comment(rawValue: text), severity: severity, sourceLocation: location)
        let name = report.fileName
        Attachment.record(String(decoding: report.jsonData(), as: UTF8.self), named: name, sourceLocation: location)
        Attachment.record(
            StallText(report).text, named: name.replacing(".json", with: ".txt"), sourceLocation: location)
    }
}

extension StallReport {
    /// The place of the function to inspect first; `nil` if it is unknown or not in the app's own package.
    var culpritLocation: SourceLocation? {
        guard let culprit, let file = culprit.file, let line = culprit.line, line > 0,
            let frame = frames.first(where: { $0.isInApp && $0.function == culprit.function && $0.file == file })
        else { return nil }
        let path = file.split(separator: "/")
        guard let name = path.last else { return nil }
        // A file ID is the module and the file's name. The directory stands for the module of a function in C.
        let module = frame.symbol.flatMap(SwiftModule.of) ?? path.dropLast().last.map(String.init) ?? "C"
        return SourceLocation(fileID: "\(module)/\(name)", filePath: file, line: line, column: 1)
    }
}
