/// The output of `tree --json`: a list instead of a tree, because stacks may be deeper than JSON readers allow.
struct TreeReport: Encodable {
    let direction: String
    let stalls: Int
    let totalMilliseconds: Double
    let minimumPercent: Double
    /// The nodes: each one before its children, the largest child first.
    let nodes: [Node]

    struct Node: Encodable {
        /// The index of the parent; none at the top.
        let parent: Int?
        let depth: Int
        let function: String
        let image: String?
        let file: String?
        let isInApp: Bool
        let totalMilliseconds: Double
        /// The time of the stacks that end here.
        let selfMilliseconds: Double
        let stalls: Int
    }

    init(_ tree: CallTree, minimumPercent: Double) {
        direction = tree.direction.rawValue
        stalls = tree.stalls
        totalMilliseconds = Double(tree.microseconds) / 1_000
        self.minimumPercent = minimumPercent
        let minimum = CallTreeText.minimum(of: tree, percent: minimumPercent)
        var nodes: [Node] = []
        var waiting = tree.roots.reversed().map { (index: $0, parent: Int?.none, depth: 0) }
        while let (index, parent, depth) = waiting.popLast() {
            let node = tree.nodes[index]
            guard node.total >= minimum else { continue }
            let function = tree.table.functions[node.function]
            nodes.append(
                Node(
                    parent: parent, depth: depth, function: function.name, image: function.image, file: function.file,
                    isInApp: function.isInApp, totalMilliseconds: Double(node.total) / 1_000,
                    selfMilliseconds: Double(node.own) / 1_000, stalls: node.stalls
                )
            )
            let place = nodes.count - 1
            waiting += node.children.reversed().map { ($0, place, depth + 1) }
        }
        self.nodes = nodes
    }
}
