internal import CLinux
import Dispatch
import LinuxSupport
import StackCapture
import Synchronization

/// Finds out that a loop without observers waits, and needs no heartbeat; only reads, on the watchdog.
protocol IdleCheck: AnyObject, Sendable {
    /// Returns whether the loop surely has no work; `thread` ran the last item, if known, in `lastDelay` nanoseconds.
    func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool

    func markSent(to thread: Int32?)

    /// The most items that a pool runs at the same time, for each priority; `nil` if it is not known.
    var width: Int? { get }
}

extension IdleCheck {
    var width: Int? { nil }

    func markSent(to thread: Int32?) {}
}

/// A global queue of libdispatch, whose threads are busy with earlier items if an item waits in it.
///
/// Its label and width confirm its private layout, ``DispatchLayout``; an item that was just sent confirms its list.
final class GlobalQueueIdleCheck: IdleCheck {
    /// The address of the queue's list of items; `nil` if the layout is another one.
    private let items: UInt64?
    private let isConfirmed = Atomic<Bool>(false)
    private let memory = GuardedMemory()

    init(_ queue: DispatchQueue) {
        guard let address = GuardedMemory().dispatchObject(of: queue),
            DispatchLayout.label(of: address, memory) == queue.label,
            DispatchLayout.width(of: address, memory) == DispatchLayout.poolWidth
        else {
            items = nil
            return
        }
        items = address &+ DispatchLayout.itemsOffset
    }

    /// Confirms the layout right after an item has been sent, unless a thread has taken it already.
    func confirm() {
        guard !isConfirmed.load(ordering: .relaxed), let items, let first = memory.word(at: items), first != 0 else {
            return
        }
        isConfirmed.store(true, ordering: .relaxed)
    }

    func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool {
        guard isConfirmed.load(ordering: .relaxed), let items else { return false }
        return memory.word(at: items) == 0
    }
}

/// The pool of Swift's tasks, on Linux a concurrent queue of libdispatch (DispatchGlobalExecutor.cpp), whose state
/// counts the items that threads have; a task that is counted itself confirms the layout.
final class TaskPoolIdleCheck: IdleCheck {
    static let label = "Swift global concurrent queue"

    /// The address of the queue's state, which the runtime never frees; 0 until it is confirmed.
    private let state = Atomic<UInt>(0)
    private let idleState = Atomic<UInt64>(0)
    /// Whether a task has run on another queue: the program has replaced the pool, or runs its tasks on one thread.
    var isReplaced: Bool { replaced.load(ordering: .relaxed) }
    private let replaced = Atomic<Bool>(false)
    /// The heartbeats that wait in the queue.
    let pending = Atomic<Int>(0)
    /// Whether the labels of queues are read right, as that of one that is known.
    private static let readsLabels = GuardedMemory().dispatchObject(of: DispatchQueue.main).map {
        DispatchLayout.label(of: $0, GuardedMemory()) == DispatchQueue.main.label
    }

    func confirm() {
        guard state.load(ordering: .relaxed) == 0, let current = clinux_current_queue() else { return }
        let memory = GuardedMemory()
        let queue = UInt64(UInt(bitPattern: current))
        let address = queue &+ DispatchLayout.stateOffset
        let label = DispatchLayout.label(of: queue, memory)
        if let label, label != Self.label, Self.readsLabels == true { replaced.store(true, ordering: .relaxed) }
        guard label == Self.label,
            let width = DispatchLayout.width(of: queue, memory), let word = memory.word(at: address),
            address.isMultiple(of: UInt64(MemoryLayout<UInt64>.alignment)),
            DispatchLayout.runs(word, width: width)
        else { return }
        idleState.store(DispatchLayout.idleState(width: width), ordering: .relaxed)
        state.store(UInt(address), ordering: .releasing)
    }

    /// The address of the queue; `nil` until it is confirmed.
    var queue: UInt64? {
        let state = UInt64(state.load(ordering: .acquiring))
        return state == 0 ? nil : state - DispatchLayout.stateOffset
    }

    var width: Int? {
        let idle = idleState.load(ordering: .relaxed)
        return idle == 0 ? nil : 0x1000 - Int(idle >> 41)
    }

    func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool {
        guard let word = UnsafePointer<UInt64>(bitPattern: state.load(ordering: .acquiring)) else { return false }
        return clinux_load_word(word) & ~DispatchLayout.idleIgnoredMask == idleState.load(ordering: .relaxed)
    }
}

final class TaskPools: IdleCheck {
    let all: [(priority: TaskPriority, idle: TaskPoolIdleCheck)]

    init(_ priorities: [TaskPriority]) { all = priorities.map { ($0, TaskPoolIdleCheck()) } }

    var width: Int? { all.lazy.compactMap(\.idle.width).first }

    func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool {
        all.allSatisfy { $0.idle.isIdle(thread: thread, lastDelay: lastDelay) }
    }

    final class Sent: Sendable {
        private let left: Atomic<Int>
        private let item: @Sendable () -> Void

        init(_ count: Int, _ item: @escaping @Sendable () -> Void) {
            left = Atomic(count)
            self.item = item
        }

        func hasRun() {
            if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { item() }
        }
    }
}

/// An event loop whose thread waits for all of its work in one place: in epoll_wait(2) without a timeout.
///
/// SwiftNIO's loops do: a timer is an event, too (SelectorEpoll.swift). The place is learned. An item that is sent while
/// the thread waits in the right place runs at once, and then the thread waits there again. A turn that waits for another
/// epoll set has another stack pointer. To be taken for the loop's wait, it would have to end within
/// ``longestDelay`` of a heartbeat, and begin again, ``confirmations`` times in a row.
final class EventLoopIdleCheck: IdleCheck {
    /// The longest time until an item runs that wakes the loop from its wait, in nanoseconds.
    static let longestDelay: UInt64 = 1_000_000
    static let confirmations = 3

    private struct LearnedPlace {
        var thread: Int32?
        var probe: ThreadProbe?
        /// Where the thread waited when the last item was sent; `nil` once the item has confirmed it or not.
        var candidate: EpollWait?
        var confirmed: (place: EpollWait, times: Int)?
        var place: EpollWait?
    }
    // A mutex for the compiler: only the watchdog uses it.
    private let state = Mutex(LearnedPlace())
    private let read: @Sendable (ThreadProbe) -> EpollWait?

    init(read: @escaping @Sendable (ThreadProbe) -> EpollWait? = { $0.epollWait() }) {
        self.read = read
    }

    func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool {
        state.withLock { state in
            guard let now = read(&state, thread) else {
                state.confirmed = nil
                return false
            }
            if let place = state.place { return place == now }
            guard state.candidate == now, lastDelay <= Self.longestDelay else {
                state.confirmed = nil
                return false
            }
            state.candidate = nil
            let times = state.confirmed.map { $0.place == now ? $0.times : 0 } ?? 0
            state.confirmed = (now, times + 1)
            if times + 1 >= Self.confirmations { state.place = now }
            return state.place != nil
        }
    }

    func markSent(to thread: Int32?) {
        state.withLock { state in
            if state.place == nil { state.candidate = read(&state, thread) }
        }
    }

    private func read(_ state: inout LearnedPlace, _ thread: Int32?) -> EpollWait? {
        guard let thread else { return nil }
        if state.thread != thread {
            state = LearnedPlace(thread: thread, probe: try? ThreadProbe(thread: thread, files: [.syscall, .kept]))
        }
        return (state.probe ?? (try? ThreadProbe(thread: thread, files: .syscall))).flatMap(read)
    }
}

/// Finds the thread that runs a serial dispatch queue, by its private layout, ``DispatchLayout``, once an item on the
/// queue has confirmed the layout by its own thread.
final class QueueOwner: IdleCheck {
    private let queue: DispatchQueue
    /// The address of the queue's state; 0 until it is confirmed.
    private let state = Atomic<UInt>(0)

    init(_ queue: DispatchQueue) {
        self.queue = queue
    }

    func confirm() {
        guard state.load(ordering: .relaxed) == 0 else { return }
        // The layout may be another one: until it is confirmed, every word is read through the kernel.
        let memory = GuardedMemory()
        guard let wrapped = memory.dispatchObject(of: queue),
            case let address = wrapped &+ DispatchLayout.stateOffset,
            address.isMultiple(of: UInt64(MemoryLayout<UInt64>.alignment)), let word = memory.word(at: address),
            word & DispatchLayout.ownerMask == UInt64(clinux_gettid())
        else { return }
        state.store(UInt(address), ordering: .relaxed)
    }

    func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool { isIdle }

    /// Whether the queue runs no item, and has none or is suspended; `false` if it cannot be determined.
    var isIdle: Bool { word.map(DispatchLayout.isIdle) ?? false || isSuspended }

    /// Whether the queue runs no item, and it or a target is suspended: what waits in it does so on purpose.
    var isSuspended: Bool {
        guard let word, word & DispatchLayout.ownerMask == 0, let address else { return false }
        return DispatchLayout.chain(from: address, GuardedMemory()).contains { DispatchLayout.isSuspended($0.state) }
    }

    /// The address of the queue's C object; `nil` until the layout is confirmed.
    private var address: UInt64? {
        let word = UInt64(state.load(ordering: .relaxed))
        return word == 0 ? nil : word - DispatchLayout.stateOffset
    }

    /// The queue's state; `nil` until the layout is confirmed.
    private var word: UInt64? {
        // `self` retains the queue, and the queue its state, so a confirmed address stays mapped.
        UnsafePointer(bitPattern: state.load(ordering: .relaxed)).map { clinux_load_word($0) }
    }

    /// Returns the thread that runs the queue now, or that of the target for which its items wait: one load if the queue
    /// runs, once the layout is confirmed; `nil` until then.
    ///
    /// It is unknown if the queue is empty, or no thread runs what it waits for. The thread that ran the queue last may be
    /// doing other work then, or have ended.
    func current() -> CaptureTarget? {
        guard let word, let address else { return nil }
        if let thread = Int32(exactly: word & DispatchLayout.ownerMask), thread != 0 { return .thread(thread) }
        if DispatchLayout.isIdle(word) { return .unknown }
        let blocker = DispatchLayout.blocker(of: address, besides: 0, GuardedMemory())
        return blocker?.thread.map(CaptureTarget.thread) ?? .unknown
    }
}
