import StallReports

/// The stacks of many stalls merged by function, each with the stalled time that it stands for.
struct CallTree {
    /// What stands at the top.
    enum Direction: String, CaseIterable {
        /// The threads' first functions, with what they called below.
        case topDown = "top-down"
        /// The functions that the time was spent in, with their callers below.
        case bottomUp = "bottom-up"
    }

    /// A function, in the place that its callers (or callees) give it.
    struct Node {
        /// Index into the table's functions.
        var function: Int
        /// Index into ``nodes``, less than this node's own; `nil` at the top.
        var parent: Int?
        /// Stalled time of all stacks that come through here.
        var total: Int
        /// Stalled time of the stacks that end here.
        var own: Int
        /// How many stalls' stacks come through here.
        var stalls: Int
        /// The node's children, largest first; only in a finished tree.
        var children: [Int]
        fileprivate var lastStall: Int
    }

    let direction: Direction
    /// Whether functions that only pass a call on are left out.
    let leavesOutPlumbing: Bool
    private(set) var table = StackTable()
    private(set) var nodes: [Node] = []
    /// The nodes at the top, largest first; only in a finished tree.
    private(set) var roots: [Int] = []
    /// Stalled time of all stalls, in microseconds.
    private(set) var microseconds = 0
    /// How many stalls there are.
    private(set) var stalls = 0
    private var indices: [Key: Int] = [:]

    private struct Key: Hashable {
        var parent: Int?
        var function: Int
    }

    init(_ direction: Direction, leavesOutPlumbing: Bool = false) {
        self.direction = direction
        self.leavesOutPlumbing = leavesOutPlumbing
    }

    /// Takes in a report's stacks.
    mutating func add(_ report: StallReport) {
        stalls += 1
        for share in table.add(report) {
            microseconds += share.microseconds
            add(functions(of: share.node), share.microseconds)
        }
    }

    /// The tree with every node's children in order.
    func finished() -> CallTree {
        var tree = self
        for (index, node) in nodes.enumerated() {
            if let parent = node.parent { tree.nodes[parent].children.append(index) } else { tree.roots.append(index) }
        }
        // Equal ones stand in the order of their names, so that a tree does not depend on the order of the files.
        func comesFirst(_ left: Int, _ right: Int) -> Bool {
            guard nodes[left].total == nodes[right].total else { return nodes[left].total > nodes[right].total }
            return table.functions[nodes[left].function].name < table.functions[nodes[right].function].name
        }
        for index in nodes.indices { tree.nodes[index].children.sort(by: comesFirst) }
        tree.roots.sort(by: comesFirst)
        return tree
    }

    /// The functions of a stack from the tree's top downwards, a function that calls itself only once.
    ///
    /// Recursion by itself would make one chain of a stack for each depth that it was seen in.
    private func functions(of node: Int) -> [Int] {
        let frames = table.path(of: node)
        let all = frames.map { table.frames[$0].function }
        let shown = leavesOutPlumbing ? all.filter { !table.functions[$0].isRuntimeFrame } : all
        // A stack of nothing else is still shown.
        var functions: [Int] = []
        for function in shown.isEmpty ? all : shown where functions.last != function { functions.append(function) }
        return direction == .topDown ? functions.reversed() : functions
    }

    private mutating func add(_ functions: [Int], _ share: Int) {
        var parent: Int?
        for function in functions {
            let key = Key(parent: parent, function: function)
            let index = indices[key] ?? nodes.count
            if index == nodes.count {
                indices[key] = index
                nodes.append(
                    Node(
                        function: function, parent: parent, total: 0, own: 0, stalls: 0, children: [], lastStall: 0
                    )
                )
            }
            nodes[index].total += share
            if nodes[index].lastStall != stalls {
                nodes[index].lastStall = stalls
                nodes[index].stalls += 1
            }
            parent = index
        }
        if let parent { nodes[parent].own += share }
    }
}
