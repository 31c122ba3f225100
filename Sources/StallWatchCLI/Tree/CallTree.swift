import StallReports
import TextOutput

struct CallTree {
    enum Direction: String, CaseIterable {
        case topDown = "top-down"
        case bottomUp = "bottom-up"
    }

    struct Node {
        var function: Int
        /// Index into ``nodes``, less than this node's own; `nil` at the top.
        var parent: Int?
        /// Stalled time of all stacks that come through here.
        var total = 0
        var own = 0
        var stalls = 0
        /// The line in the function's file, if all stacks have the same one here.
        var line: Int?
        /// The node's children, largest first; only in a finished tree.
        var children: [Int] = []
        fileprivate var lastReport = 0
    }

    let direction: Direction
    let leavesOutRuntimeFrames: Bool
    private(set) var table = StackTable()
    private(set) var nodes: [Node] = []
    /// The nodes at the top, largest first; only in a finished tree.
    private(set) var roots: [Int] = []
    /// Stalled time of all stalls, also of those without a report of their own, in microseconds.
    private(set) var microseconds = 0
    private(set) var stalls = 0
    private var reports = 0
    private var keys = Numbered<Key>()

    private struct Key: Hashable {
        var parent: Int?
        var function: Int
    }

    init(_ direction: Direction, leavesOutRuntimeFrames: Bool = false) {
        self.direction = direction
        self.leavesOutRuntimeFrames = leavesOutRuntimeFrames
    }

    mutating func add(_ report: StallReport) {
        let count = report.repeats &+ 1
        reports += 1
        stalls = stalls &+ count
        let factor = StallWeights.factor(of: report)
        // Once for each stack, because thousands of samples may have the same.
        var stacks = Numbered<Int>()
        var times: [Int] = []
        for share in table.add(report) {
            let time = StallWeights.scaled(share.microseconds, by: factor)
            microseconds += time
            let number = stacks.number(of: share.node)
            if number == times.count { times.append(0) }
            times[number] += time
        }
        for (node, time) in zip(stacks.values, times) { add(calls(of: node), time, stalls: count) }
    }

    func finished() -> CallTree {
        var tree = self
        for (index, node) in nodes.enumerated() {
            if let parent = node.parent { tree.nodes[parent].children.append(index) } else { tree.roots.append(index) }
        }
        // Ties are sorted by name, so that the tree does not depend on the order of the files.
        func comesFirst(_ left: Int, _ right: Int) -> Bool {
            guard nodes[left].total == nodes[right].total else { return nodes[left].total > nodes[right].total }
            return table.functions[nodes[left].function].name < table.functions[nodes[right].function].name
        }
        for index in nodes.indices { tree.nodes[index].children.sort(by: comesFirst) }
        tree.roots.sort(by: comesFirst)
        return tree
    }

    /// The functions of a stack from the tree's top downwards, each once in a row: recursion gives no chain per depth.
    private func calls(of node: Int) -> [Call] {
        let all = table.path(of: node).map { (table.frames[$0].function, table.frames[$0].line) as Call }
        let shown = leavesOutRuntimeFrames ? all.filter { !table.functions[$0.function].isRuntimeFrame } : all
        // A stack of nothing else is still shown.
        var calls: [Call] = []
        for call in shown.isEmpty ? all : shown where calls.last?.function != call.function { calls.append(call) }
        return direction == .topDown ? calls.reversed() : calls
    }

    private typealias Call = (function: Int, line: Int?)

    private mutating func add(_ calls: [Call], _ share: Int, stalls: Int) {
        var parent: Int?
        for call in calls {
            let index = keys.number(of: Key(parent: parent, function: call.function))
            if index == nodes.count { nodes.append(Node(function: call.function, parent: parent, line: call.line)) }
            if nodes[index].line != call.line { nodes[index].line = nil }
            nodes[index].total += share
            if nodes[index].lastReport != reports {
                nodes[index].lastReport = reports
                nodes[index].stalls = nodes[index].stalls &+ stalls
            }
            parent = index
        }
        if let parent { nodes[parent].own += share }
    }
}

/// A function with one caller stands right below it, so that stacks of thirty frames fit the terminal.
struct CallTreeText {
    struct Line: Equatable {
        /// Stalled time in microseconds; `nil` where it is that of the line above.
        var microseconds: Int?
        var indentation: String
        var name: String
        var image: String?
        var isInApp: Bool
        var place: String?
    }

    private(set) var lines: [Line] = []
    /// Stalled time of nodes that are not shown because they are below the minimum; the topmost ones only.
    private(set) var omittedMicroseconds = 0
    private let tree: CallTree
    private let minimum: Int
    private let foldsOthers: Bool

    /// `minimum` is in percent of all stalled time; `foldsOthers` shows only the ends of runs that are not the app's.
    init(_ tree: CallTree, minimumPercent minimum: Double, foldsOthers: Bool = false) {
        self.tree = tree
        self.foldsOthers = foldsOthers
        self.minimum = Self.minimum(of: tree, percent: minimum)
        for root in tree.roots {
            let total = tree.nodes[root].total
            if total >= self.minimum { append(root) } else { omittedMicroseconds += total }
        }
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
            let own = chain.enumerated().map { place, link in
                let function = tree.table.functions[tree.nodes[link].function]
                return Line(
                    microseconds: place == 0 ? tree.nodes[link].total : nil,
                    indentation: place == 0 ? first : rest, name: function.name, image: function.image,
                    isInApp: function.isInApp,
                    place: function.file.map { sourcePlace($0, tree.nodes[link].line) }
                )
            }
            lines += foldsOthers ? Self.folded(own) : own
            for (place, child) in children.enumerated().reversed() {
                let isLast = place == children.count - 1
                waiting.append((child, rest + (isLast ? "└─ " : "├─ "), rest + (isLast ? "   " : "│  ")))
            }
        }
    }

    /// The longest run of functions that are not the app's that is shown whole.
    private static let maximumRun = 3

    private static func folded(_ chain: [Line]) -> [Line] {
        var folded: [Line] = []
        var rest = chain[...]
        while let first = rest.first {
            let run = rest.prefix { $0.isInApp == first.isInApp }
            rest = rest.dropFirst(run.count)
            guard !first.isInApp, run.count > maximumRun, let last = run.last else {
                folded += run
                continue
            }
            folded += [
                first, Line(indentation: last.indentation, name: "… \(run.count - 2) frames", isInApp: false), last,
            ]
        }
        return folded
    }

    private func shownChildren(of node: Int) -> [Int] {
        tree.nodes[node].children.filter { tree.nodes[$0].total >= minimum }
    }
}

extension CallTreeText.Line {
    func text(of all: Int, for terminal: Terminal) -> String {
        let percent = microseconds.map { (Double($0) / Double(max(all, 1)) * 100).fixed(1) + " %" } ?? ""
        let time = microseconds.map { (Double($0) / 1_000).duration } ?? ""
        let mark = isInApp ? ">" : " "
        let begin = "\(percent.padded(to: 7, .right))  \(time.padded(to: 10, .right)) \(mark) \(indentation)"
        let room = terminal.width.map { max($0 - begin.columns, 0) } ?? .max
        let name = name.printable.truncated(to: room)
        var text = begin + (isInApp ? terminal.style(name, .bold) : name)
        if let note = (place ?? image).map({ "  \($0.printable)" }), name.columns + note.columns <= room {
            text += terminal.style(note, .faint)
        }
        return text + "\n"
    }
}
