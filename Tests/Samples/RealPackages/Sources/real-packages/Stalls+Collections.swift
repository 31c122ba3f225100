import CZlib
import DequeModule
import Dispatch
import HeapModule
import OrderedCollections

/// Its conformance to Hashable is the compiler's.
private struct Key: Hashable {
    var section: String
    var row: Int
}

private struct Job: Comparable {
    var priority: Int
    var name: String

    static func < (one: Job, other: Job) -> Bool { one.priority < other.priority }
}

@inline(never)
private func rebuildCatalog() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        var catalog: OrderedDictionary<Key, Int> = [:]
        for number in 0..<300 { catalog[Key(section: "a section with a long name", row: number), default: 0] += number }
        for number in 0..<100 { catalog.removeValue(forKey: Key(section: "a section with a long name", row: number)) }
        use(catalog.count)
    }
    finish()
}

@inline(never)
private func rotateDeque() {
    let end = DispatchTime.now() + stallLength
    var deque = Deque((0..<1_000).map(String.init))
    while DispatchTime.now() < end {
        for _ in 0..<100 {
            deque.append(deque.removeFirst())
            deque.insert("x", at: 500)
            deque.remove(at: 250)
        }
    }
    use(deque.count)
    finish()
}

@inline(never)
private func drainHeap() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        var heap = Heap((0..<500).map { Job(priority: ($0 &* 7_919) % 503, name: "job \($0)") })
        while let job = heap.popMin() { use(job.priority) }
    }
    finish()
}

@inline(never)
private func deduplicate() {
    let end = DispatchTime.now() + stallLength
    let keys = (0..<2_000).map { Key(section: "section \($0 % 50)", row: $0 % 100) }
    while DispatchTime.now() < end { use(Set(keys).count) }
    finish()
}

@inline(never)
private func compressLog() {
    let input = (0..<400_000).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13) }
    let end = DispatchTime.now() + stallLength
    var output = [UInt8](repeating: 0, count: Int(compressBound(uLong(input.count))))
    while DispatchTime.now() < end {
        var length = uLong(output.count)
        compress2(&output, &length, input, uLong(input.count), 9)
    }
    use(output.count)
    finish()
}

let collectionStalls = [
    LabeledStall("swift-collections: OrderedDictionary", culprit: "rebuildCatalog", .computing) { rebuildCatalog() },
    LabeledStall("swift-collections: Deque", culprit: "rotateDeque", .computing) { rotateDeque() },
    LabeledStall("swift-collections: Heap", culprit: "drainHeap", .computing) { drainHeap() },
    LabeledStall("derived Hashable", culprit: "deduplicate", .computing) { deduplicate() },
    LabeledStall("zlib: compress2", culprit: "compressLog", .computing) { compressLog() },
]
