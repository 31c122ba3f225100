import Dispatch
import Foundation
import Synchronization

// Every kind of declaration that code may be in, and the functions that the compiler makes beside it.

private class Shelf {
    var titles: [String]
    /// Its observer is as slow as a stall.
    var capacity: Int = 0 {
        didSet {
            usleep(stallMicroseconds)
            finish()
        }
    }
    lazy var index: [Int] = {
        usleep(stallMicroseconds)
        finish()
        return titles.map(\.count)
    }()

    init(titles: [String]) {
        self.titles = titles
    }

    init(slowly count: Int) {
        titles = (0..<count).map { "title \($0)" }
        usleep(stallMicroseconds)
        finish()
    }

    subscript(number: Int) -> String {
        usleep(stallMicroseconds)
        finish()
        return titles[number]
    }

    func arrange() { finish() }
}

private final class OwnShelf: Shelf {
    @inline(never)
    override func arrange() {
        usleep(stallMicroseconds)
        super.arrange()
        finish()
    }
}

private final class Resource {
    private let number: Int
    init(_ number: Int) { self.number = number }

    deinit {
        usleep(stallMicroseconds)
        use(number)
        finish()
    }
}

private enum Shape: Hashable {
    case circle(radius: Int, name: String)
    case square(side: Int, name: String)
    case polygon([Int], [String])
}

private indirect enum Tree {
    case leaf(Int)
    case node(Tree, Tree)
}

@inline(never)
@_optimize(none)
private func makeShelf(_ number: Int) -> Shelf {
    number > 0 ? OwnShelf(titles: ["a", "b"]) : Shelf(titles: ["a", "b"])
}

@inline(never)
private func releaseResource() {
    var resource: Resource? = Resource(1)
    use(resource)
    resource = nil
    finish()
}

@inline(never)
private func compareShapes() {
    let shapes = (0..<500).map { Shape.polygon(Array(0..<20) + [$0], (0..<10).map { "corner number \($0)" }) }
    let end = DispatchTime.now() + stallLength
    var count = 0
    while DispatchTime.now() < end {
        for (one, other) in zip(shapes, shapes.reversed()) where one == other { count &+= 1 }
    }
    use(count)
    finish()
}

@inline(never)
private func copyRecords() {
    struct Record {
        var one: String
        var two: [Int]
        var three: Shape?
        var four: Any
        var five: Data
    }
    let record = Record(
        one: "a long string that is not inline", two: [1], three: .circle(radius: 1, name: "a name that is long"),
        four: [1], five: Data(count: 100))
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        var records = (0..<200).map { _ in record }
        for index in records.indices { records[index].two.append(index) }
        use(records.count)
    }
    finish()
}

@inline(never)
private func growTree() {
    func grow(_ depth: Int) -> Tree { depth == 0 ? .leaf(depth) : .node(grow(depth - 1), grow(depth - 1)) }
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(grow(14)) }
    finish()
}

/// Instantiates metadata of a type that no call before has used.
@inline(never)
@_semantics("optimize.sil.specialize.generic.never")
private func nest<Value>(_ value: Value, _ depth: Int) -> Int {
    if depth == 0 { return MemoryLayout<Value>.size }
    return nest([(value, depth)], depth - 1)
}

@inline(never)
private func instantiateMetadata() {
    let end = DispatchTime.now() + stallLength
    var depth = 20
    while DispatchTime.now() < end {
        use(nest(UInt8(0), depth))
        depth += 20
    }
    finish()
}

@inline(never)
private func castValues() {
    let values: [Any] = (0..<1_000).map { number -> Any in number % 2 == 0 ? ["a": number] : "text \(number)" }
    let end = DispatchTime.now() + stallLength
    var count = 0
    while DispatchTime.now() < end {
        for value in values where (value as? [String: Int]) != nil || (value as? any Hashable) != nil { count &+= 1 }
    }
    use(count)
    finish()
}

@inline(never)
private func describeValues() {
    let end = DispatchTime.now() + stallLength
    let shape = Shape.circle(radius: 1, name: "round")
    while DispatchTime.now() < end { use("\(shape) and \(Mirror(reflecting: shape).children.count)") }
    finish()
}

@inline(never)
private func throwErrors() {
    struct Failure: LocalizedError {
        var errorDescription: String? { "it has failed" }
    }
    func fail(_ number: Int) throws { if number >= 0 { throw Failure() } }
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        do { try fail(1) } catch { use(error.localizedDescription) }
    }
    finish()
}

@inline(never)
private func serializeJSON() throws {
    let object: [String: Any] = ["items": (0..<500).map { ["name": "item \($0)", "count": $0] as [String: Any] }]
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try JSONSerialization.data(withJSONObject: object)) }
    finish()
}

@inline(never)
private func splitText() {
    let text = (0..<2_000).map { "word\($0)" }.joined(separator: ", ")
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        use(text.components(separatedBy: ", ").count)
        use(text.replacingOccurrences(of: "word", with: "term").uppercased().count)
    }
    finish()
}

let declarationStalls = [
    LabeledStall("property observer", culprit: "capacity", .sleeping) { makeShelf(0).capacity = 1 },
    LabeledStall("lazy property", culprit: "index", .sleeping) { use(makeShelf(0).index) },
    LabeledStall("initializer", culprit: "init", .sleeping) { use(Shelf(slowly: 3).titles) },
    LabeledStall("subscript", culprit: "subscript", .sleeping) { use(makeShelf(0)[1]) },
    LabeledStall("overridden method", culprit: "arrange", .sleeping) { makeShelf(1).arrange() },
    LabeledStall("deinitializer", culprit: "deinit", .sleeping) { releaseResource() },
    LabeledStall("derived Equatable of an enum", culprit: "compareShapes", .computing) { compareShapes() },
    LabeledStall("outlined copies", culprit: "copyRecords", .computing) { copyRecords() },
    LabeledStall("indirect enum", culprit: "growTree", .computing) { growTree() },
    LabeledStall("metadata of generic types", culprit: "nest", orCaller: "instantiateMetadata", .computing) {
        instantiateMetadata()
    },
    LabeledStall("dynamic casts", culprit: "castValues", .computing) { castValues() },
    LabeledStall("reflection", culprit: "describeValues", .computing) { describeValues() },
    LabeledStall("errors", culprit: "throwErrors", .computing) { throwErrors() },
    LabeledStall("JSONSerialization", culprit: "serializeJSON", .computing) { try serializeJSON() },
    LabeledStall("strings of Foundation", culprit: "splitText", .computing) { splitText() },
]
