import Dispatch
import LinuxSupport
import StackCapture

/// Private layouts of libdispatch (queue_internal.h, lock.h; Swift 6.3), validated by their contents before use.
enum DispatchLayout {
    /// `dq_state`, whose low 30 bits are the thread that drains the queue.
    static let stateOffset: UInt64 = 56
    /// DLOCK_OWNER_MASK.
    static let ownerMask: UInt64 = 0x3fff_ffff
    /// The bits of `dq_state` that an idle queue may have in any state: its role, and the priority of its last items.
    static let idleIgnoredMask: UInt64 = 0x3f_0000_0000
    /// The last item that waits, 0 if there is none: `dq_items_tail`.
    static let itemsOffset: UInt64 = 48
    /// `dq_width`, the lower 16 bits: the number of items that run at the same time.
    static let widthOffset: UInt64 = 80
    /// The width of a global queue: DISPATCH_QUEUE_WIDTH_POOL.
    static let poolWidth: UInt64 = 0xfff
    static let targetOffset: UInt64 = 24

    /// Returns the state of an idle queue, not suspended or enqueued: no place taken (DISPATCH_QUEUE_STATE_INIT_VALUE).
    static func idleState(width: UInt64) -> UInt64 { (0x1000 - min(width, 0x1000)) << 41 }

    /// Returns whether a concurrent queue with this state runs an item, and no more than it may.
    ///
    /// If it runs one item at a time, all places are taken, as of a serial queue. But the thread of its first item does not
    /// own it, and that of a serial queue does.
    static func runs(_ state: UInt64, width: UInt64) -> Bool {
        let places = state >> 41 & 0x1fff
        guard 1..<0x1000 ~= width, places > 0x1000 - width, places <= 0x1000 else { return false }
        return width > 1 || state & ownerMask == 0
    }

    /// Returns how many items of a concurrent queue with this state have a place: they run, or wait in the root queue for a
    /// thread; 0 while a thread hands out places, for which it takes all.
    static func places(_ state: UInt64, width: UInt64) -> Int {
        let places = state >> 41 & 0x1fff
        guard 1..<0x1000 ~= width, places > 0x1000 - width, places <= 0x1000, state & ownerMask == 0 else { return 0 }
        return Int(places - (0x1000 - width))
    }

    static func width(of queue: UInt64, _ memory: any MemoryReading) -> UInt64? {
        memory.word(at: queue &+ widthOffset).map { $0 & 0xffff }
    }

    /// Returns whether a serial queue with this state has no item and runs none.
    static func isIdle(_ state: UInt64) -> Bool { state & ~idleIgnoredMask == idleState(width: 1) }

    /// Returns whether a queue with this state is suspended and no thread runs it (DISPATCH_QUEUE_SUSPEND_BITS_MASK).
    static func isSuspended(_ state: UInt64) -> Bool { state & 0xff80_0000_0000_0000 != 0 && state & ownerMask == 0 }
    static let labelOffset: UInt64 = 72
    /// The most queues that are followed from target to target.
    static let maximumTargets = 8

    /// The queue for which `dispatch_sync` or a similar call waits.
    ///
    /// Such a thread waits on the word `dsc_event` of a struct dispatch_sync_context_s on its own stack. The word is
    /// UINT32_MAX during the wait, and the waiter's thread id follows it. 56 bytes before the word is `dc_ctxt`, which
    /// points to the struct itself, 96 bytes before the word. 40 bytes before the word is `dc_other`, the queue. Three
    /// matching values are no coincidence.
    static func queue(ofWaiter waiter: Int32, waitingOn event: UInt64, _ memory: any MemoryReading) -> UInt64? {
        guard event > 96, memory.integer(at: event) == -1, memory.integer(at: event + 4) == waiter,
            memory.word(at: event - 56) == event - 96, let queue = memory.word(at: event - 40), queue != 0
        else { return nil }
        return queue
    }

    /// Returns a queue and those that it targets, one after the other, with their states, as far as they can be read.
    static func chain(from queue: UInt64, _ memory: any MemoryReading) -> [(queue: UInt64, state: UInt64)] {
        var (next, chain): (UInt64, [(queue: UInt64, state: UInt64)]) = (queue, [])
        while chain.count < maximumTargets, next != 0, let state = memory.word(at: next &+ stateOffset) {
            chain.append((next, state))
            next = memory.word(at: next &+ targetOffset) ?? 0
        }
        return chain
    }

    /// Returns the first of a queue and its targets that keeps the queue's items waiting.
    ///
    /// A thread runs it, or it is suspended (`nil`), whatever its own targets run. One that the waiter runs keeps no items of
    /// the waiter.
    static func blocker(
        of queue: UInt64, besides waiter: Int32, _ memory: any MemoryReading
    ) -> (queue: UInt64, thread: Int32?)? {
        for link in chain(from: queue, memory) {
            let thread = Int32(truncatingIfNeeded: link.state & ownerMask)
            if thread != 0, thread != waiter { return (link.queue, thread) }
            if isSuspended(link.state) { return (link.queue, nil) }
        }
        return nil
    }

    /// The generation number of a group, for whose change its waiters wait: `dg_gen` of struct dispatch_group_s.
    static let generationOffset: UInt64 = 52

    /// The first word of each dispatch group, which is its type, read from a group of the monitor's own.
    static let groupType: UInt64? = {
        let (group, memory) = (DispatchGroup(), GuardedMemory())
        // The C object exists as long as `group` does.
        return withExtendedLifetime(group) { memory.dispatchObject(of: group).flatMap { memory.word(at: $0) } }
    }()

    /// A source that is never resumed, kept for ever: to release one ends the program.
    ///
    /// Unsafe only for the compiler: nothing changes the reference, and nothing is called on the source.
    private nonisolated(unsafe) static let sample = DispatchSource.makeUserDataAddSource() as AnyObject

    /// The first word of each dispatch source, which is its type, read from one of the monitor's own.
    static let sourceType: UInt64? = {
        let memory = GuardedMemory()
        return memory.dispatchObject(of: sample).flatMap { memory.word(at: $0) }
    }()

    /// The flags of an object without references from outside, of a source that gets no event any more, and of a canceled one:
    /// DQF_RELEASED, DSF_DELETED and DSF_CANCELED of `dq_atomic_flags`, beside the width.
    private static let (released, deleted, canceled): (UInt64, UInt64, UInt64) = (0x80_0000, 0x8000_0000, 0x1000_0000)

    /// Returns whether an item of a queue is a source that runs no code of the program any more, and only waits to be freed.
    ///
    /// That of `asyncAfter` is one once its block has run. A canceled source may still run its cancellation handler.
    static func isSpent(_ item: UInt64, ofType type: UInt64? = sourceType, _ memory: any MemoryReading) -> Bool {
        guard let type, type != 0, memory.word(at: item) == type, let flags = memory.word(at: item &+ widthOffset)
        else { return false }
        return flags & (released | deleted | canceled) == released | deleted
    }

    /// Returns the group whose generation number is at an address; `nil` if there is none, or the type is not known.
    static func group(ofType type: UInt64?, waitedForAt address: UInt64, _ memory: any MemoryReading) -> UInt64? {
        guard let type, type != 0, address > generationOffset, address % 8 == generationOffset % 8 else { return nil }
        let group = address - generationOffset
        return memory.word(at: group) == type ? group : nil
    }

    /// Returns how often a group was entered and not left: `dg_bits`, before the generation number, counts down in steps
    /// of 4 (DISPATCH_GROUP_VALUE_INTERVAL) below two flags; `nil` if that is no plausible number.
    static func entries(ofGroupWaitedForAt address: UInt64, _ memory: any MemoryReading) -> Int? {
        guard let bits = memory.integer(at: address &- 4) else { return nil }
        let entries = (0 &- Int(bits & ~3)) / 4
        return 1...100_000 ~= entries ? entries : nil
    }

    static func label(of queue: UInt64, _ memory: any MemoryReading) -> String? {
        guard let address = memory.word(at: queue &+ labelOffset), let text = memory.string(at: address),
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f })
        else { return nil }
        return text
    }
}
