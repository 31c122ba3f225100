/// A call tree as lines of text.
///
/// A function that only one other calls stands right below it, so that the indentation shows where ways part and not how
/// deep they are: stacks of thirty frames stay within the width of a terminal.
struct CallTreeText {
    /// One function.
    struct Line: Equatable {
        /// Stalled time in microseconds; `nil` where it is that of the line above.
        var microseconds: Int?
        /// What leads to the name: `│  ├─ `.
        var indentation: String
        var name: String
        /// The name of the image.
        var image: String?
        var isInApp: Bool
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

    /// The least stalled time that is shown: what rounds up to the percentage, and something at all.
    static func minimum(of tree: CallTree, percent: Double) -> Int {
        max(Int((Double(tree.microseconds) * percent / 100).rounded(.up)), 1)
    }

    /// Walks with a list of its own: a stack may be deeper than the thread's own stack allows.
    private mutating func append(_ root: Int) {
        var waiting = [(node: root, first: "", rest: "")]
        while let (node, first, rest) = waiting.popLast() {
            var chain = [node]
            var children = shownChildren(of: node)
            // A chain goes on as long as nothing parts from it, neither another way nor a stack's end.
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
                        isInApp: function.isInApp
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
