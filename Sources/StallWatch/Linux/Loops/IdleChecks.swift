internal import CLinux
import Dispatch
import LinuxSupport
import StackCapture
import Synchronization

/// Finds out that a loop without observers waits for work, so that it needs no heartbeat.
///
/// Only the watchdog calls it.
protocol IdleCheck: AnyObject, Sendable {
    /// Returns whether the loop has no work now; `false` if that is not certain.
    ///
    /// - Parameters:
    ///   - thread: The thread that ran the loop's last item; `nil` if that is unknown.
    ///   - lastDelay: How long that item took to run, in nanoseconds.
    ///   - isQuiet: Returns whether no thread of the process can do anything before an event wakes the watchdog.
    /// - Returns: Whether it has no work.
    func isIdle(thread: Int32?, lastDelay: UInt64, isQuiet: () -> Bool) -> Bool

    /// Whether the loop still has no work, as far as the loop itself shows it.
    var isStillIdle: Bool { get }

    /// Notes that an item is about to be sent to the loop.
    func noteSent(to thread: Int32?)

    /// The way in which the loop rests now that it is idle; `nil` if it cannot rest.
    var rest: LoopRest? { get }
}

/// A serial dispatch queue, whose state says whether it is idle.
final class QueueIdleCheck: IdleCheck {
    private let queue: QueueOwner

    init(_ queue: QueueOwner) {
        self.queue = queue
        DispatchWorkers.follow()
    }

    func isIdle(thread: Int32?, lastDelay: UInt64, isQuiet: () -> Bool) -> Bool { queue.isIdle }

    var isStillIdle: Bool { queue.isIdle }

    func noteSent(to thread: Int32?) {}

    var rest: LoopRest? { .dispatch }
}

/// A pool of threads, which is idle if no thread of the process does anything.
final class PoolIdleCheck: IdleCheck {
    init() { DispatchWorkers.follow() }

    func isIdle(thread: Int32?, lastDelay: UInt64, isQuiet: () -> Bool) -> Bool { isQuiet() }

    var isStillIdle: Bool { true }

    func noteSent(to thread: Int32?) {}

    var rest: LoopRest? { .dispatch }
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
    /// The number of items in a row that have to confirm the place.
    static let confirmations = 3

    private struct State {
        var thread: Int32?
        var reader: EpollWaitReader?
        /// Where the thread waited when the last item was sent; `nil` once the item has confirmed it or not.
        var candidate: EpollWait?
        var confirmed: (place: EpollWait, times: Int)?
        var place: EpollWait?
    }
    // A mutex for the compiler: only the watchdog uses it.
    private let state = Mutex(State())
    private let read: @Sendable (EpollWaitReader) -> EpollWait?

    /// Creates a check.
    ///
    /// - Parameter read: Reads where a thread waits.
    init(read: @escaping @Sendable (EpollWaitReader) -> EpollWait? = { $0.read() }) {
        self.read = read
    }

    func isIdle(thread: Int32?, lastDelay: UInt64, isQuiet: () -> Bool) -> Bool {
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

    // The watchdog reads the thread's place itself before it rests.
    var isStillIdle: Bool { true }

    func noteSent(to thread: Int32?) {
        state.withLock { state in
            if state.place == nil { state.candidate = read(&state, thread) }
        }
    }

    var rest: LoopRest? {
        state.withLock { state in
            guard let thread = state.thread, let place = state.place else { return nil }
            return .events(thread: thread, place)
        }
    }

    private func read(_ state: inout State, _ thread: Int32?) -> EpollWait? {
        guard let thread else { return nil }
        if state.thread != thread { state = State(thread: thread, reader: EpollWaitReader(thread: thread)) }
        return state.reader.flatMap(read)
    }
}

/// Finds the thread that currently runs a serial dispatch queue.
///
/// The queue's state is read by its private layout, ``DispatchLayout``. Therefore an item that runs on the queue checks
/// that its own thread is there. Until that check succeeds, the answer is `unknown`.
final class QueueOwner: Sendable {
    private let queue: DispatchQueue
    /// The address of the queue's state; 0 until it is confirmed.
    private let state = Atomic<UInt>(0)

    init(_ queue: DispatchQueue) {
        self.queue = queue
    }

    /// Checks the layout, in an item that runs on the queue.
    func check() {
        guard state.load(ordering: .relaxed) == 0 else { return }
        // The layout may be another one: until it is confirmed, every word is read through the kernel.
        let memory = GuardedMemory()
        guard let wrapped = Self.address(of: queue),
            case let address = wrapped &+ DispatchLayout.stateOffset,
            address.isMultiple(of: UInt64(MemoryLayout<UInt64>.alignment)), let word = memory.word(at: address),
            word & DispatchLayout.ownerMask == UInt64(clinux_gettid())
        else { return }
        state.store(UInt(address), ordering: .relaxed)
    }

    /// Returns the address of a queue's C object, which is not confirmed; `nil` if it cannot be read.
    static func address(of queue: DispatchQueue) -> UInt64? {
        let object = UInt64(UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque()))
        return GuardedMemory().word(at: object + DispatchLayout.wrappedOffset)
    }

    /// The owner of a queue.
    enum Answer: Equatable {
        case thread(Int32)
        /// No thread: the queue is empty or suspended, or waits for its target queue.
        case noThread
        /// The owner cannot be determined.
        case unknown
    }

    /// Whether the queue has no item and runs none; `false` if it cannot be determined.
    ///
    /// Costs one load.
    var isIdle: Bool {
        // As in `answer()`.
        guard let word = UnsafePointer<UInt64>(bitPattern: state.load(ordering: .relaxed)) else { return false }
        return DispatchLayout.isIdle(clinux_load_word(word))
    }

    /// Returns the thread that runs the queue now.
    ///
    /// Once the layout is confirmed, this is one load.
    func answer() -> Answer {
        // `self` retains the queue, and the queue its state, so a confirmed address stays mapped.
        guard let word = UnsafePointer<UInt64>(bitPattern: state.load(ordering: .relaxed)),
            let thread = Int32(exactly: clinux_load_word(word) & DispatchLayout.ownerMask)
        else { return .unknown }
        return thread == 0 ? .noThread : .thread(thread)
    }
}
