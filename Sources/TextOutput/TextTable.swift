package struct TextTable {
    package struct Column {
        var title: String
        var alignment = Alignment.left
        /// Whether it is cut when the line is too short: the widest flexible column is cut first.
        var isFlexible = false
        /// If the line is still too short, columns are left out in the order of these numbers; `nil` keeps the column.
        var dropped: Int?
        /// The width that it keeps when it is cut, unless no column is left to leave out.
        var minimumWidth: Int
        /// Whether cells are cut in the middle, because their ends matter: `File.swift:88`.
        var keepsEnds: Bool
        /// The width that it is cut to where the line has no limit; `nil` for none.
        var unlimitedWidth: Int?
        var style: Terminal.Style?

        package init(
            _ title: String, _ alignment: Alignment = .left, isFlexible: Bool = false, minimumWidth: Int = 8,
            keepsEnds: Bool = false, unlimitedWidth: Int? = nil, dropped: Int? = nil, style: Terminal.Style? = nil
        ) {
            self.title = title.printable
            self.alignment = alignment
            self.isFlexible = isFlexible
            self.minimumWidth = minimumWidth
            self.keepsEnds = keepsEnds
            self.unlimitedWidth = unlimitedWidth
            self.dropped = dropped
            self.style = style
        }
    }

    private static let gap = "  "

    package let columns: [Column]
    package private(set) var rows: [[String]] = []
    private var styles: [Terminal.Style?] = []

    package init(_ columns: [Column]) { self.columns = columns }

    package mutating func add(_ cells: [String], style: Terminal.Style? = nil) {
        precondition(cells.count == columns.count, "a row has a cell for each column")
        rows.append(cells.map(\.printable))
        styles.append(style)
    }

    package func text(for terminal: Terminal) -> String {
        let places = layout(in: terminal.width)
        var rows = rows
        for place in places { cut(place, of: &rows) }
        let header = line(columns.map(\.title), places) { cell, _ in terminal.style(cell, .bold) }
        let lines = zip(rows, styles).map { row, style in
            line(row, places) { cell, index in
                let style = index == 0 ? style ?? columns[index].style : columns[index].style
                return style.map { terminal.style(cell, $0) } ?? cell
            }
        }
        return header + lines.joined()
    }

    private typealias Place = (index: Int, width: Int)

    /// Cuts a column's cells to its width: in the middle where different cells would read the same without their ends.
    private func cut(_ place: Place, of rows: inout [[String]]) {
        let whole = Set(rows.map { $0[place.index] })
        let readings = Dictionary(grouping: whole) { $0.truncated(to: place.width) }
        for row in rows.indices {
            let cell = rows[row][place.index]
            let text = cell.truncated(to: place.width)
            let isClear = readings[text]?.count == 1 && !columns[place.index].keepsEnds
            rows[row][place.index] = isClear ? text : cell.truncatedInMiddle(to: place.width)
        }
    }

    private func line(_ cells: [String], _ layout: [Place], _ style: (String, Int) -> String) -> String {
        var text = layout.map { place in
            let column = columns[place.index]
            let cell = cells[place.index]
            let isLast = place.index == layout.last?.index
            return style(
                isLast && column.alignment == .left ? cell : cell.padded(to: place.width, column.alignment), place.index
            )
        }.joined(separator: Self.gap)
        while text.last == " " { text.removeLast() }
        return text + "\n"
    }

    private func layout(in available: Int?) -> [Place] {
        // A column without any text is not shown.
        let used = columns.indices.filter { index in rows.isEmpty || rows.contains { !$0[index].isEmpty } }
        var places = used.map { index -> Place in
            (index, max(columns[index].title.columns, rows.map { $0[index].columns }.max() ?? 0))
        }
        guard let available else {
            return places.map { ($0.index, min($0.width, columns[$0.index].unlimitedWidth ?? .max)) }
        }
        while true {
            let shrunk = shrink(places, to: \.minimumWidth, in: available)
            if width(of: shrunk) <= available { return shrunk }
            let droppable = places.indices.filter { columns[places[$0].index].dropped != nil }
            let next = droppable.min {
                (columns[places[$0].index].dropped ?? .max) < (columns[places[$1].index].dropped ?? .max)
            }
            guard let next else { return shrink(places, to: { _ in 1 }, in: available) }
            places.remove(at: next)
        }
    }

    private func width(of places: [Place]) -> Int {
        places.reduce(0) { $0 + $1.width } + Self.gap.count * (places.count - 1)
    }

    private func shrink(_ places: [Place], to minimum: (Column) -> Int, in available: Int) -> [Place] {
        var places = places
        var excess = width(of: places) - available
        while excess > 0 {
            let flexible = places.indices.filter { place in
                let column = columns[places[place].index]
                return column.isFlexible && places[place].width > minimum(column)
            }
            guard let widest = flexible.max(by: { places[$0].width < places[$1].width }) else { break }
            places[widest].width -= 1
            excess -= 1
        }
        return places
    }
}

package enum Alignment {
    case left, right
}
