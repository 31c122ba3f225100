import LinuxSupport
import Synchronization

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
