import Dispatch
import LinuxSupport
import StackCapture

/// Where a dispatch queue keeps the items that wait, and an item the next one: blocks, tasks, and sources with an event.
///
/// A concurrent queue's own list has what has no thread yet. A drain of the main queue takes the whole list away first
/// (`_dispatch_main_queue_drain`): then there are only the items that came since. Items carry no time. The layout is private:
/// a queue of the monitor's own proves it.
struct QueueItems: Equatable, Sendable {
    /// Where a queue has the first of its items, and an item the next one, in bytes.
    let head: UInt64
    let next: UInt64

    /// The most items that are read: some 2 ms.
    static let maximumItems = 4_096
    private static let maximumTries = 3
    private static let searchedWords: UInt64 = 24
    private static let learnedItems = 3

    static var learned: QueueItems? { state.withLock { $0 } }
    private static let state = ProcessMutex<QueueItems?>(nil)
    private static let mainQueue = GuardedMemory().dispatchObject(of: DispatchQueue.main).flatMap {
        DispatchLayout.label(of: $0, GuardedMemory()) == StallReport.LockKind.mainQueueLabel ? $0 : nil
    }

    /// Returns the items that wait in the main queue, at most ``maximumItems``; `nil` if they cannot be read.
    ///
    /// In some no code of the program is left to run: ``DispatchLayout/isSpent(_:ofType:_:)``.
    static func ofMainQueue(_ memory: any MemoryReading, by layout: QueueItems? = learned) -> [UInt64]? {
        mainQueue.flatMap { layout?.items(of: $0, memory) }
    }

    /// Returns the items that wait in a queue, the oldest first and at most ``maximumItems``; `nil` if they do not end with the
    /// queue's last one.
    ///
    /// Threads change the list meanwhile, so it is followed up to three times. Memory that was freed is no error.
    func items(of queue: UInt64, _ memory: any MemoryReading) -> [UInt64]? {
        for _ in 0..<Self.maximumTries {
            guard let first = memory.word(at: queue &+ head),
                let last = memory.word(at: queue &+ DispatchLayout.itemsOffset)
            else { return nil }
            var items: [UInt64] = []
            var item = first
            while item != 0, items.count < Self.maximumItems {
                items.append(item)
                item = item == last ? 0 : memory.word(at: item &+ next) ?? 0
            }
            // A list that is too long is no circle.
            let isWhole = items.last ?? 0 == last || item != 0 && Set(items).count == items.count
            if isWhole, memory.word(at: queue &+ head) == first { return items }
        }
        return nil
    }

    /// Learns the layout once, from the items of a queue that is suspended and never runs them.
    static func learn() {
        guard learned == nil else { return }
        _ = DispatchLayout.sourceType
        let found = mainQueue == nil ? nil : search()
        state.withLock { $0 = found }
    }

    /// A suspended queue with items, kept for ever: to release one ends the program.
    private static let sample: DispatchQueue = {
        let queue = DispatchQueue(label: "stallwatch.layout")
        queue.suspend()
        for _ in 0..<learnedItems { queue.async {} }
        return queue
    }()

    private static func search() -> QueueItems? {
        guard let queue = GuardedMemory().dispatchObject(of: sample) else { return nil }
        for head in stride(from: 0, to: 8 * searchedWords, by: 8) where head != DispatchLayout.itemsOffset {
            for next: UInt64 in [16, 8, 24] {
                let layout = QueueItems(head: head, next: next)
                if layout.items(of: queue, GuardedMemory())?.count == learnedItems { return layout }
            }
        }
        return nil
    }
}
