import StallReports
import TextOutput

extension ReportView {
    /// The source lines around the culprit, if its file is found.
    var source: String {
        guard let culprit = report.culprit, let path = culprit.file, let number = culprit.line,
            let excerpt = SourceExcerpt(SourceExcerpt.lines(of: path), around: number)
        else { return "" }
        let width = String(excerpt.first + excerpt.lines.count - 1).count
        var text = terminal.style(sourcePlace(path, number).printable, .bold) + "\n"
        for (index, words) in excerpt.lines.enumerated() {
            let isBlamed = index == excerpt.place
            let mark = isBlamed ? "> " : "  "
            var line = mark + String(excerpt.first + index).padded(to: width, .right) + " │ " + words
            if let columns = terminal.width { line = line.truncated(to: columns) }
            text += terminal.style(line, isBlamed ? .bold : .faint) + "\n"
        }
        return text
    }
}
