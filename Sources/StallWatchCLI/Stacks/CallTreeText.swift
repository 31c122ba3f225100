import TextOutput

/// A call tree as lines of text.
///
/// A function with one caller stands right below it, so the indentation shows branches and not depth: stacks of thirty
/// frames fit the terminal.
struct CallTreeText {
    /// One function.
    struct Line: Equatable {
        /// Stalled time in microseconds; `nil` where it is that of the line above.
        var microseconds: Int?
        /// The text before the name: `│  ├─ `.
        var indentation: String
        var name: String
        /// The name of the image.
        var image: String?
        var isInApp: Bool
        /// The file's name and the line, if they are known.
        var place: String?
    }

    /// The lines, from the top.
    private(set) var lines: [Line] = []
    /// Stalled time of nodes that are not shown because they are below the minimum; the topmost ones only.
    private(set) var omittedMicroseconds = 0
    private let tree: CallTree
    private let minimum: Int

    /// - Parameters:
    ///   - tree: A finished tree.
    ///   - minimum: The least share of all stalled time that is shown, 0 to 100 percent.
    init(_ tree: CallTree, minimumPercent minimum: Double) {
        self.tree = tree
        self.minimum = Self.minimum(of: tree, percent: minimum)
        let shown = tree.roots.filter { tree.nodes[$0].total >= self.minimum }
        omittedMicroseconds =
            tree.roots.reduce(0) { $0 + tree.nodes[$1].total }
            - shown.reduce(0) { $0 + tree.nodes[$1].total }
        for root in shown { append(root) }
    }

    /// The least stalled time that is shown: the percentage, rounded up, and at least 1.
    static func minimum(of tree: CallTree, percent: Double) -> Int {
        max(Int((Double(tree.microseconds) * percent / 100).rounded(.up)), 1)
    }

    /// Walks with an explicit list, because a stack may be deeper than recursion allows.
    private mutating func append(_ root: Int) {
        var waiting = [(node: root, first: "", rest: "")]
        while let (node, first, rest) = waiting.popLast() {
            var chain = [node]
            var children = shownChildren(of: node)
            // A chain continues until it branches or a stack ends.
            while children.count == 1, tree.nodes[children[0]].total == tree.nodes[node].total {
                chain.append(children[0])
                children = shownChildren(of: children[0])
            }
            for (place, link) in chain.enumerated() {
                let function = tree.table.functions[tree.nodes[link].function]
                lines.append(
                    Line(
                        microseconds: place == 0 ? tree.nodes[link].total : nil,
                        indentation: place == 0 ? first : rest, name: function.name, image: function.image,
                        isInApp: function.isInApp,
                        place: function.file.map { sourcePlace($0, tree.nodes[link].line) }
                    )
                )
            }
            for (place, child) in children.enumerated().reversed() {
                let isLast = place == children.count - 1
                waiting.append((child, rest + (isLast ? "└─ " : "├─ "), rest + (isLast ? "   " : "│  ")))
            }
        }
    }

    private func shownChildren(of node: Int) -> [Int] {
        tree.nodes[node].children.filter { tree.nodes[$0].total >= minimum }
    }
}

extension CallTreeText.Line {
    /// The line: the share of `all` microseconds, the time, and the function with its place.
    func text(of all: Int, for terminal: Terminal) -> String {
        let percent = microseconds.map { (Double($0) / Double(max(all, 1)) * 100).fixed(1) + " %" } ?? ""
        let time = microseconds.map { (Double($0) / 1_000).duration } ?? ""
        let begin = "\(percent.padded(to: 7, .right))  \(time.padded(to: 10, .right))  \(indentation)"
        let room = terminal.width.map { max($0 - begin.columns, 0) } ?? .max
        let name = name.printable.truncated(to: room)
        var text = begin + (isInApp ? terminal.style(name, .bold) : name)
        if let note = (place ?? image).map({ "  \($0.printable)" }), name.columns + note.columns <= room {
            text += terminal.style(note, .faint)
        }
        return text + "\n"
    }
}
