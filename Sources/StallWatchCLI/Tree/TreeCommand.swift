import ArgumentParser
import TextOutput

struct TreeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tree",
        abstract: "Merge all stacks into one tree, weighted by stalled time.",
        discussion: """
            Each moment of a stall counts for the sample nearest to it, so a function's time is stalled time, and the \
            top's is that of all stalls. A function right below another at the same indentation is its only callee (or \
            caller). Top-down starts at the threads' first functions, bottom-up at the functions where the time was spent.

            Examples:
              stallwatch tree stalls
              stallwatch tree stalls --bottom-up --minimum 5
              stallwatch tree stalls --fingerprint 41e4 --all-frames --json
            """
    )

    @OptionGroup var selection: ReportSelection

    @Flag(exclusivity: .exclusive)
    var direction = CallTree.Direction.topDown

    @Option(
        help: ArgumentHelp("Leave out functions with less than this share of all stalled time.", valueName: "percent"))
    var minimum = 1.0

    @Flag(help: "Show all frames: runtime frames too (thunks, the run loop's own), and runs of other code whole.")
    var allFrames = false

    @OptionGroup var output: TextOrJSONOptions

    func validate() throws {
        guard (0...100).contains(minimum) else {
            throw ValidationError("--minimum is \(minimum), but has to be between 0 and 100 percent.")
        }
    }

    func run() throws {
        var tree = CallTree(direction, leavesOutRuntimeFrames: !allFrames)
        try NoStalls.allowed(output.json) {
            try selection.read().forEach(.whole) { report, _ in tree.add(report) }
        }
        let finished = tree.finished()
        try output.write(TreeReport(finished, minimumPercent: minimum), isLast: true) {
            Self.text(finished, minimumPercent: minimum, foldsOthers: !allFrames, for: $0)
        }
    }

    static func text(
        _ tree: CallTree, minimumPercent: Double, foldsOthers: Bool = true, for terminal: Terminal
    ) -> String {
        guard tree.stalls > 0 else { return "No report matches.\n" }
        let shown = CallTreeText(tree, minimumPercent: minimumPercent, foldsOthers: foldsOthers)
        var text = shown.lines.map { $0.text(of: tree.microseconds, for: terminal) }.joined()
        text += "\n\(counted(tree.stalls, "stall", "stalls")), \((Double(tree.microseconds) / 1_000).duration), "
        text += "\(tree.direction.rawValue)"
        if shown.omittedMicroseconds > 0 {
            let omitted = (Double(shown.omittedMicroseconds) / 1_000).duration
            text += "; stacks of \(omitted) are below the minimum of \(minimumPercent.fixed(1)) %"
        }
        return text + ".\n"
    }
}

extension CallTree.Direction: EnumerableFlag {
    static func name(for value: CallTree.Direction) -> NameSpecification { .customLong(value.rawValue) }

    static func help(for value: CallTree.Direction) -> ArgumentHelp? {
        value == .topDown ? "Callers first." : "The functions that the time was spent in first."
    }
}

/// The output of `tree --json`: a list instead of a tree, because stacks may be deeper than JSON readers allow.
struct TreeReport: Encodable {
    let direction: String
    let stalls: Int
    let totalMilliseconds: Double
    let minimumPercent: Double
    /// The nodes: each one before its children, the largest child first.
    let nodes: [Node]

    struct Node: Encodable {
        let parent: Int?
        let depth: Int
        let function: String
        let image: String?
        let file: String?
        let isInApp: Bool
        let totalMilliseconds: Double
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
