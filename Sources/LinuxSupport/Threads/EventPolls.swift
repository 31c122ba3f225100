internal import CLinux
import Synchronization

/// Notices the next event of epoll sets whose threads wait, without taking it and without a thread that wakes up before.
///
/// A thread of its own waits in the kernel for all polls. One thread at a time begins and ends polls.
///
/// `@unchecked Sendable`: the memory of the polls is passed to the kernel only, and freed after the polls have ended.
package final class EventPolls: @unchecked Sendable {
    /// The most polls at a time; a process has some tens of event loops at most.
    package static let capacity = 128

    private let polls: UInt64
    private let memory: UnsafeMutablePointer<clinux_poll>
    private let state: PollState
    private let thread: WorkerThread
    /// The number of polls of the current round.
    private var count = 0

    /// What the waiting thread shares with the others.
    private final class PollState: Sendable {
        /// Increases with every round, so that a completion of an earlier one does not count.
        let round = Atomic<UInt64>(1)
        /// The last round of which a poll is complete.
        let fired = Atomic<UInt64>(0)
    }

    /// Creates the polls and their thread.
    ///
    /// Fails where the system has no asynchronous I/O, or refuses it or the thread.
    ///
    /// - Parameter whenFired: Called on the waiting thread when a poll is complete. It must not block.
    package init?(whenFired: @escaping @Sendable () -> Void) {
        var polls: UInt64 = 0
        guard clinux_create_polls(&polls, UInt32(Self.capacity) * 2) == 0 else { return nil }
        let state = PollState()
        do throws(SystemError) {
            thread = try WorkerThread(name: "stallwatch-evt") { [polls] in
                var identifier: UInt64 = 0
                while clinux_wait_for_poll(polls, &identifier) {
                    guard identifier == state.round.load(ordering: .sequentiallyConsistent) else { continue }
                    state.fired.store(identifier, ordering: .sequentiallyConsistent)
                    whenFired()
                }
            }
        } catch {
            clinux_destroy_polls(polls)
            return nil
        }
        self.polls = polls
        self.state = state
        memory = .allocate(capacity: Self.capacity)
        memory.initialize(repeating: clinux_poll(), count: Self.capacity)
    }

    deinit {
        clinux_destroy_polls(polls)
        if thread.isCurrent { thread.detach() } else { thread.join() }
        memory.deallocate()
    }

    /// Begins a poll of an epoll set.
    ///
    /// - Parameter descriptor: The set's descriptor.
    /// - Returns: Whether it has begun.
    package func begin(_ descriptor: Int32) -> Bool {
        guard count < Self.capacity else { return false }
        let round = state.round.load(ordering: .sequentiallyConsistent)
        guard clinux_begin_poll(polls, memory + count, descriptor, round) == 0 else { return false }
        count += 1
        return true
    }

    /// Whether a poll that has begun since ``endAll()`` is complete.
    package var hasFired: Bool {
        state.fired.load(ordering: .sequentiallyConsistent) == state.round.load(ordering: .sequentiallyConsistent)
    }

    /// Ends all polls.
    package func endAll() {
        guard count > 0 else { return }
        state.round.wrappingAdd(1, ordering: .sequentiallyConsistent)
        for index in 0..<count { clinux_cancel_poll(polls, memory + index) }
        count = 0
    }
}
