import Synchronization

/// Passes items from any thread to one reader; bounded if ``put(_:limit:replacing:dropping:)`` has a limit.
package final class Mailbox<Item: Sendable>: Sendable {
    private struct Contents {
        var items: [Item] = []
        var isClosed = false
        var isWaiting = false
        var isInWork = false
    }
    private let contents = Mutex(Contents())
    private let arrival = Semaphore()
    private let closing = Semaphore()

    package init() {}

    package var isDrained: Bool { contents.withLock { $0.isClosed && $0.items.isEmpty } }

    package var isClosed: Bool { contents.withLock { $0.isClosed } }

    /// Whether no item is queued, and the reader is done with all that it received.
    package var isIdle: Bool { contents.withLock { $0.items.isEmpty && !$0.isInWork } }

    /// The items that are queued, the oldest first.
    package var items: [Item] { contents.withLock { $0.items } }

    /// Queues an item, and never waits; returns an item that is lost for it, or the item itself if the mailbox is closed.
    ///
    /// The item takes the place of the last one for which `isOlder` is true. If there is none and more than `limit` items are
    /// queued then, the one with the index that `victim` returns is lost.
    @discardableResult
    package func put(
        _ item: Item, limit: Int = .max, replacing isOlder: (Item) -> Bool = { _ in false },
        dropping victim: ([Item]) -> Int? = { _ in 0 }
    ) -> Item? {
        let (lost, mustWake) = contents.withLock { contents -> (Item?, Bool) in
            guard !contents.isClosed else { return (item, false) }
            let mustWake = exchange(&contents.isWaiting, with: false)
            if let older = contents.items.lastIndex(where: isOlder) {
                contents.items[older] = item
                return (nil, mustWake)
            }
            contents.items.append(item)
            guard contents.items.count > limit, let index = victim(contents.items) else { return (nil, mustWake) }
            return (contents.items.remove(at: index), mustWake)
        }
        if mustWake { arrival.post() }
        return lost
    }

    /// Returns the oldest item, or waits for one; `nil` at a deadline in monotonic nanoseconds, or if closed and empty.
    ///
    /// Only the reader calls it.
    package func next(until deadline: UInt64 = .max, beforeWaiting prepare: () -> Void = {}) -> Item? {
        var hasTime = true
        while true {
            let (item, isClosed) = contents.withLock { contents -> (Item?, Bool) in
                contents.isInWork = !contents.items.isEmpty
                contents.isWaiting = contents.items.isEmpty && !contents.isClosed && hasTime
                return (contents.items.isEmpty ? nil : contents.items.removeFirst(), contents.isClosed)
            }
            if item != nil || isClosed || !hasTime { return item }
            prepare()
            hasTime = arrival.wait(until: deadline)
        }
    }

    /// Makes ``next(until:beforeWaiting:)`` return `nil` once the mailbox is empty, and refuses further items.
    package func close() {
        contents.withLock { $0.isClosed = true }
        arrival.post()
        closing.post()
    }

    /// Waits until the mailbox is closed, or until a deadline in monotonic nanoseconds; only the reader calls it.
    package func waitForClose(until deadline: UInt64) {
        if !isClosed, closing.wait(until: deadline) { closing.post() }
    }
}
