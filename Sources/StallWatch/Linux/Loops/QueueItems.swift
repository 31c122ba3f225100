import Dispatch
import LinuxSupport
import StackCapture
import Synchronization

/// The main dispatch queue's list of items, which are blocks, tasks, and sources with an event.
///
/// A drain of the queue takes the whole list away first (`_dispatch_main_queue_drain`): then there are only the items that
/// came since. Items carry no time. The layout is private: a queue of the monitor's own proves it.
struct QueueItems: Equatable, Sendable {
    private let queue: UInt64
    /// Where the queue has the first of its items, and an item the next one, in bytes.
    private let head: UInt64
    private let next: UInt64

    /// The most items that are counted: some 2 ms.
    static let maximumItems = 4_096
    private static let searchedWords = 24
    private static let learnedItems = 3
    private static let label = "com.apple.main-thread"

    static var ofMainQueue: QueueItems? { state.withLock { $0 } }
    private static let state = Mutex<QueueItems?>(nil)

    /// Returns how many items wait, at most ``maximumItems``; `nil` if the list cannot be read.
    func count(_ memory: some MemoryReading) -> Int? {
        memory.word(at: queue &+ head).flatMap { items(from: $0, memory)?.count }
    }

    private func items(from first: UInt64, _ memory: some MemoryReading) -> (count: Int, last: UInt64)? {
        var (item, count, last) = (first, 0, UInt64(0))
        while item != 0, count < Self.maximumItems {
            guard let following = memory.word(at: item &+ next) else { return nil }
            (last, item, count) = (item, following, count + 1)
        }
        return (count, last)
    }

    /// Learns the layout once, from the items of a queue that is suspended and never runs them.
    static func learn() {
        guard ofMainQueue == nil, let main = QueueOwner.address(of: .main),
            DispatchLayout.label(of: main, GuardedMemory()) == label
        else { return }
        let found = search(for: main)
        state.withLock { $0 = found }
    }

    /// A suspended queue with items, kept for ever: to release one ends the program.
    private static let learned: DispatchQueue = {
        let queue = DispatchQueue(label: "stallwatch.layout")
        queue.suspend()
        for _ in 0..<learnedItems { queue.async {} }
        return queue
    }()

    private static func search(for main: UInt64) -> QueueItems? {
        let memory = GuardedMemory()
        guard let address = QueueOwner.address(of: learned),
            let words = memory.words(at: address, count: searchedWords)
        else { return nil }
        let tail = Int(DispatchLayout.itemsOffset / 8)
        for head in words.indices where head != tail {
            for next: UInt64 in [16, 8, 24] {
                let layout = QueueItems(queue: main, head: UInt64(8 * head), next: next)
                if let found = layout.items(from: words[head], memory), found.count == learnedItems,
                    found.last == words[tail]
                {
                    return layout
                }
            }
        }
        return nil
    }
}
