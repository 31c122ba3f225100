import StallReports
import TextOutput

extension ReportView {
    /// Lines shown before and after the culprit's.
    static let sourceContext = 3
    /// A larger source file is not read.
    static let maximumSourceBytes = 8 << 20

    /// The source lines around the culprit, if its file is found.
    var source: String {
        guard let culprit = report.culprit, let path = culprit.file, let number = culprit.line, number > 0,
            let bytes = try? FileReader.contents(of: path, limit: Self.maximumSourceBytes)
        else { return "" }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        // The file may be of another version.
        guard lines.indices.contains(number - 1) else { return "" }
        let shown = max(number - 1 - Self.sourceContext, 0)...min(number - 1 + Self.sourceContext, lines.count - 1)
        let width = String(shown.upperBound + 1).count
        var text = terminal.style(sourcePlace(path, number).printable, .bold) + "\n"
        for index in shown {
            let isBlamed = index == number - 1
            let mark = isBlamed ? "> " : "  "
            var line = mark + String(index + 1).padded(to: width, .right) + " │ " + String(lines[index]).printable
            if let columns = terminal.width { line = line.truncated(to: columns) }
            text += terminal.style(line, isBlamed ? .bold : .faint) + "\n"
        }
        return text
    }
}
