/// A table of text for people, which fits the terminal.
struct TextTable {
    /// A column.
    struct Column {
        var title: String
        var alignment = Alignment.left
        /// Whether it is cut where the line is too short: the widest of those is cut first.
        var isFlexible = false
        /// How all its cells look.
        var style: Terminal.Style?

        init(_ title: String, _ alignment: Alignment = .left, isFlexible: Bool = false, style: Terminal.Style? = nil) {
            self.title = title
            self.alignment = alignment
            self.isFlexible = isFlexible
            self.style = style
        }
    }

    /// A flexible column is not made narrower than this.
    private static let minimumWidth = 8
    private static let gap = "  "

    let columns: [Column]
    var rows: [[String]] = []

    init(_ columns: [Column]) { self.columns = columns }

    /// Adds a row, with a cell for each column.
    mutating func add(_ cells: [String]) {
        precondition(cells.count == columns.count, "a row has a cell for each column")
        rows.append(cells.map(\.printable))
    }

    /// The lines, each with a line feed.
    func text(for terminal: Terminal) -> String {
        let widths = widths(in: terminal.width)
        let header = line(columns.map(\.title), widths) { terminal.style($0, .bold) }
        return header
            + rows.map { row in
                line(row, widths) { cell, column in column.style.map { terminal.style(cell, $0) } ?? cell }
            }.joined()
    }

    private func line(_ cells: [String], _ widths: [Int], _ style: (String) -> String) -> String {
        line(cells, widths) { cell, _ in style(cell) }
    }

    private func line(_ cells: [String], _ widths: [Int], _ style: (String, Column) -> String) -> String {
        let last = cells.indices.last
        return cells.indices.map { index in
            let column = columns[index]
            let cell = cells[index].truncated(to: widths[index])
            let padded =
                index == last && column.alignment == .left ? cell : cell.padded(to: widths[index], column.alignment)
            return style(padded, column)
        }.joined(separator: Self.gap) + "\n"
    }

    private func widths(in available: Int?) -> [Int] {
        var widths = columns.indices.map { index in
            max(columns[index].title.columns, rows.map { $0[index].columns }.max() ?? 0)
        }
        guard let available else { return widths }
        var excess = widths.reduce(0, +) + Self.gap.count * (widths.count - 1) - available
        while excess > 0 {
            let flexible = widths.indices.filter { columns[$0].isFlexible && widths[$0] > Self.minimumWidth }
            guard let widest = flexible.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }
}
