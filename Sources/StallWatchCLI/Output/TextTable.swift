/// A table of text for people, which fits the terminal.
struct TextTable {
    /// A column.
    struct Column {
        var title: String
        var alignment = Alignment.left
        /// Whether it is cut where the line is too short: the widest of those is cut first.
        var isFlexible = false
        /// Where the line is too short all the same, columns are left out, in the order of these numbers; `nil` for one that
        /// stays.
        var dropped: Int?
        /// How all its cells look.
        var style: Terminal.Style?

        init(
            _ title: String, _ alignment: Alignment = .left, isFlexible: Bool = false, dropped: Int? = nil,
            style: Terminal.Style? = nil
        ) {
            self.title = title
            self.alignment = alignment
            self.isFlexible = isFlexible
            self.dropped = dropped
            self.style = style
        }
    }

    /// A flexible column is not made narrower than this, unless there is nothing left to leave out.
    private static let minimumWidth = 8
    private static let gap = "  "

    let columns: [Column]
    private(set) var rows: [[String]] = []

    init(_ columns: [Column]) { self.columns = columns }

    /// Adds a row, with a cell for each column.
    mutating func add(_ cells: [String]) {
        precondition(cells.count == columns.count, "a row has a cell for each column")
        rows.append(cells.map(\.printable))
    }

    /// The lines, each with a line feed.
    func text(for terminal: Terminal) -> String {
        let places = layout(in: terminal.width)
        let header = line(columns.map(\.title), places) { cell, _ in terminal.style(cell, .bold) }
        let lines = rows.map { row in
            line(row, places) { cell, column in column.style.map { terminal.style(cell, $0) } ?? cell }
        }
        return header + lines.joined()
    }

    /// A column that is shown, and how wide.
    private struct Place {
        var index: Int
        var width: Int
    }

    private func line(_ cells: [String], _ layout: [Place], _ style: (String, Column) -> String) -> String {
        layout.map { place in
            let column = columns[place.index]
            let cell = cells[place.index].truncated(to: place.width)
            let isLast = place.index == layout.last?.index
            return style(
                isLast && column.alignment == .left ? cell : cell.padded(to: place.width, column.alignment), column
            )
        }.joined(separator: Self.gap) + "\n"
    }

    private func layout(in available: Int?) -> [Place] {
        var places = columns.indices.map { index in
            Place(index: index, width: max(columns[index].title.columns, rows.map { $0[index].columns }.max() ?? 0))
        }
        guard let available else { return places }
        while true {
            let shrunk = shrink(places, to: Self.minimumWidth, in: available)
            if width(of: shrunk) <= available { return shrunk }
            let droppable = places.indices.filter { columns[places[$0].index].dropped != nil }
            let next = droppable.min {
                (columns[places[$0].index].dropped ?? .max) < (columns[places[$1].index].dropped ?? .max)
            }
            guard let next else { return shrink(places, to: 1, in: available) }
            places.remove(at: next)
        }
    }

    private func width(of places: [Place]) -> Int {
        places.reduce(0) { $0 + $1.width } + Self.gap.count * (places.count - 1)
    }

    /// The flexible columns as narrow as need be, but not below `minimum`.
    private func shrink(_ places: [Place], to minimum: Int, in available: Int) -> [Place] {
        var places = places
        var excess = width(of: places) - available
        while excess > 0 {
            let flexible = places.indices.filter { columns[places[$0].index].isFlexible && places[$0].width > minimum }
            guard let widest = flexible.max(by: { places[$0].width < places[$1].width }) else { break }
            places[widest].width -= 1
            excess -= 1
        }
        return places
    }
}
