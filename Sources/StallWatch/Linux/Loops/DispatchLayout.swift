import Dispatch
import LinuxSupport
import StackCapture
import Synchronization

/// Private layouts of libdispatch on 64-bit Linux (queue_internal.h, lock.h), validated by their contents before use.
///
/// Measured with the Swift 6.3 toolchain's library.
enum DispatchLayout {
    /// `dq_state`, whose low 30 bits are the thread that drains the queue.
    static let stateOffset: UInt64 = 56
    /// DLOCK_OWNER_MASK.
    static let ownerMask: UInt64 = 0x3fff_ffff
    /// The bits of `dq_state` that an idle queue may have in any state: its role, and the priority of its last items.
    static let idleIgnoredMask: UInt64 = 0x3f_0000_0000
    /// The other bits of an idle serial queue: DISPATCH_QUEUE_STATE_INIT_VALUE for a width of 1.
    ///
    /// It is not suspended, not enqueued on its target, and its only place is free.
    static let idleState: UInt64 = 0xfff << 41
    static let targetOffset: UInt64 = 24

    /// Returns whether a serial queue with this state has no item and runs none.
    static func isIdle(_ state: UInt64) -> Bool { state & ~idleIgnoredMask == idleState }
    static let labelOffset: UInt64 = 72
    /// The only property of a `DispatchQueue`, a Swift object: the address of the C object.
    ///
    /// It follows the type and the reference count.
    static let wrappedOffset: UInt64 = 16
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

    /// The thread that runs the queue, or the queue that it targets.
    ///
    /// A waiter may already run its own queue and wait for the target, so the thread `besides` does not count.
    static func owner(of queue: UInt64, besides waiter: Int32, _ memory: any MemoryReading) -> Int32? {
        var queue = queue
        for _ in 0..<maximumTargets {
            guard let state = memory.word(at: queue &+ stateOffset) else { return nil }
            let owner = Int32(truncatingIfNeeded: state & ownerMask)
            if owner != 0, owner != waiter { return owner }
            guard let target = memory.word(at: queue &+ targetOffset), target != 0 else { return nil }
            queue = target
        }
        return nil
    }

    /// The queue's label, if it is printable.
    static func label(of queue: UInt64, _ memory: any MemoryReading) -> String? {
        guard let address = memory.word(at: queue &+ labelOffset), let text = memory.string(at: address),
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f })
        else { return nil }
        return text
    }
}

/// Finds the thread on which libdispatch waits for timers and descriptors: its manager.
///
/// It runs none of the app's code. It passes what is due on to other queues, whose workers then begin a drain. libdispatch
/// wakes it once per second as soon as a program has used a pool (src/event/workqueue.c), also without work.
///
/// The manager's queue has no public name. It is a variable next to the main queue (src/init.c), so it is looked for there,
/// by its label. Its state says which thread runs it.
final class DispatchManager: Sendable {
    /// The label of the manager's queue.
    private static let label = "com.apple.libdispatch-manager"
    /// How far from the main queue it is looked for, in bytes; it was found within 2 KiB.
    private static let distance: UInt64 = 8_192

    private let found: UInt64?
    private let memory: any MemoryReading & Sendable

    /// Looks for the queue, which takes some milliseconds.
    ///
    /// - Parameters:
    ///   - main: The address of the main queue; `nil` if it is not known.
    ///   - memory: Reads this process's memory.
    init(
        near main: UInt64? = QueueOwner.address(of: .main), _ memory: any MemoryReading & Sendable = GuardedMemory()
    ) {
        self.memory = memory
        found = main.flatMap { main in
            stride(from: main &- Self.distance, through: main &+ Self.distance, by: 8)
                .first { DispatchLayout.label(of: $0, memory) == Self.label }
        }
    }

    /// The manager's thread now; `nil` if none runs, or the queue has not been found.
    var thread: Int32? {
        guard let found, let state = memory.word(at: found &+ DispatchLayout.stateOffset) else { return nil }
        let owner = Int32(truncatingIfNeeded: state & DispatchLayout.ownerMask)
        return owner == 0 ? nil : owner
    }
}
