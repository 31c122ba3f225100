import StallReports

/// The stacks of reports as one tree: what is equal by content, also of several runs, is kept once.
struct StackTable {
    struct Image: Hashable {
        var name: String
        var path: String
        var buildID: String?
    }

    /// A function, or a place without a name, identified by its name and its image's.
    struct Function: Hashable {
        /// As it was written; `image+0xoffset` for a place without a name.
        var name: String
        var symbol: String?
        var image: String?
        var file: String?
        var isInApp: Bool
        var isRuntimeFrame: Bool
    }

    struct FrameEntry: Hashable {
        var function: Int
        var image: Int?
        /// The address in the image's file; without an image, the address itself.
        var address: UInt64
        /// From 1.
        var line: Int?
        var column: Int?
        /// The depth of inlining at this address; 0 for the function that owns it.
        var inlineDepth: Int
        /// Whether it is an async function that awaits the one before it, and is not on the thread's stack.
        var isAsyncCaller: Bool

        /// Whether the function was inlined into the caller's frame, which has the same address.
        var isInlined: Bool { inlineDepth > 0 }
    }

    struct Node: Hashable {
        /// Index into ``nodes``, less than this node's own; `nil` for a thread's first function.
        var caller: Int?
        var frame: Int
    }

    private var imageTable = Numbered<Image>()
    private var frameTable = Numbered<FrameEntry>()
    private var nodeTable = Numbered<Node>()
    private(set) var functions: [Function] = []
    private var functionKeys = Numbered<FunctionKey>()

    var images: [Image] { imageTable.values }
    var frames: [FrameEntry] { frameTable.values }
    var nodes: [Node] { nodeTable.values }

    private struct KnownFrame: Hashable {
        var index: Int
        var inlineDepth: Int
    }

    private struct FunctionKey: Hashable {
        var name: String
        var image: String?
    }

    static let noStack = "[no stack]"
    /// The name of the outermost frame of a stack that does not reach to the thread's first function.
    static let incomplete = "[incomplete stack]"

    /// Adds a report's stacks; returns its shares, each with the innermost node of its stack.
    mutating func add(_ report: StallReport) -> [(node: Int, microseconds: Int)] {
        let shares = StallWeights.shares(of: report)
        var known: [Int?: Int] = [:]
        var frames: [KnownFrame: Int] = [:]
        return shares.map { share in
            // Complete and incomplete samples may show the same frames.
            let key = share.stack.map { $0 << 1 | (share.isComplete ? 0 : 1) }
            if let node = known[key] { return (node, share.microseconds) }
            let node = add(share.stack, isComplete: share.isComplete, of: report, &frames)
            known[key] = node
            return (node, share.microseconds)
        }
    }

    mutating func add(stack: Int, of report: StallReport) -> Int {
        var frames: [KnownFrame: Int] = [:]
        return add(stack, isComplete: true, of: report, &frames)
    }

    /// The frames of a stack, innermost first: indices into ``frames``.
    func path(of node: Int) -> [Int] { sequence(first: node) { nodes[$0].caller }.map { nodes[$0].frame } }

    /// The addresses of a stack, innermost first: for each the frames at it, the inlined functions first.
    func places(of node: Int) -> [[Int]] {
        var places: [[Int]] = []
        for frame in path(of: node) {
            if let inlined = places.last?.last.map({ frames[$0] }), inlined.isInlined,
                inlined.image == frames[frame].image, inlined.address == frames[frame].address
            {
                places[places.count - 1].append(frame)
            } else {
                places.append([frame])
            }
        }
        return places
    }

    func function(ofFrame frame: Int) -> Function { functions[frames[frame].function] }

    private mutating func add(
        _ stack: Int?, isComplete: Bool, of report: StallReport, _ known: inout [KnownFrame: Int]
    ) -> Int {
        guard let stack, report.stacks.indices.contains(stack), !report.stacks[stack].isEmpty else {
            return insert(Node(caller: nil, frame: marker(Self.noStack)))
        }
        var node = isComplete ? nil : insert(Node(caller: nil, frame: marker(Self.incomplete)))
        var depth = 0
        for index in report.stacks[stack].reversed() {
            depth = report.frames[index].isInlined == true ? depth + 1 : 0
            let key = KnownFrame(index: index, inlineDepth: depth)
            let frame = known[key] ?? add(report.frames[index], inlineDepth: depth, of: report)
            known[key] = frame
            node = insert(Node(caller: node, frame: frame))
        }
        return node ?? insert(Node(caller: nil, frame: marker(Self.noStack)))
    }

    private mutating func add(_ frame: StallReport.Frame, inlineDepth: Int, of report: StallReport) -> Int {
        let image = frame.image.map { report.images[$0] }
        let function = Function(
            name: report.name(of: frame),
            symbol: frame.symbol, image: image?.name, file: frame.file, isInApp: frame.isInApp,
            isRuntimeFrame: frame.isRuntimeFrame ?? false
        )
        return insert(
            FrameEntry(
                function: insert(function),
                image: image.map { insert(Image(name: $0.name, path: $0.path, buildID: $0.buildID)) },
                address: frame.offset.value, line: frame.line, column: frame.column,
                inlineDepth: inlineDepth, isAsyncCaller: frame.kind == .asyncCaller
            )
        )
    }

    private mutating func marker(_ name: String) -> Int {
        let function = Function(name: name, isInApp: false, isRuntimeFrame: false)
        return insert(FrameEntry(function: insert(function), address: 0, inlineDepth: 0, isAsyncCaller: false))
    }

    private mutating func insert(_ image: Image) -> Int { imageTable.number(of: image) }
    private mutating func insert(_ frame: FrameEntry) -> Int { frameTable.number(of: frame) }
    private mutating func insert(_ node: Node) -> Int { nodeTable.number(of: node) }

    private mutating func insert(_ function: Function) -> Int {
        let number = functionKeys.number(of: FunctionKey(name: function.name, image: function.image))
        if number == functions.count { functions.append(function) }
        // Another report may have been written where the debug information was missing.
        functions[number].file = functions[number].file ?? function.file
        return number
    }
}

/// Different values, numbered from 0 in the order in which they came.
struct Numbered<Value: Hashable> {
    private(set) var values: [Value] = []
    private var numbers: [Value: Int] = [:]

    init(_ values: [Value] = []) { for value in values { _ = number(of: value) } }

    mutating func number(of value: Value) -> Int {
        if let known = numbers[value] { return known }
        values.append(value)
        numbers[value] = values.count - 1
        return values.count - 1
    }
}
