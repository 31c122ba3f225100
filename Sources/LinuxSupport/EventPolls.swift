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

/// The place where a thread waits for events without an end, in epoll_wait(2).
///
/// Only an event of the epoll set ends such a wait; SwiftNIO's loops wait for their timers and tasks in this way, too.
package struct EpollWait: Sendable, Equatable {
    /// The epoll set's descriptor.
    package var descriptor: Int32
    /// The thread's stack pointer and program counter: they tell a wait apart from others of the same thread.
    package var stackPointer: UInt64
    package var programCounter: UInt64

    package init(descriptor: Int32, stackPointer: UInt64, programCounter: UInt64) {
        self.descriptor = descriptor
        self.stackPointer = stackPointer
        self.programCounter = programCounter
    }

    #if arch(x86_64)
        /// The numbers of epoll_wait(2) and epoll_pwait(2) (asm/unistd_64.h).
        private static let calls: Set<UInt64> = [232, 281]
    #else
        /// The number of epoll_pwait(2) (asm-generic/unistd.h).
        private static let calls: Set<UInt64> = [22]
    #endif

    /// Parses /proc/…/syscall; `nil` if the thread does not wait like this.
    package init?(_ text: ByteCursor) {
        // The number, six arguments, the stack pointer and the program counter (proc(5)).
        var text = text
        var words: [UInt64] = []
        while words.count < 9, let word = text.number() { words.append(word) }
        // The timeout is an int: of its register, only the lower half counts.
        guard words.count == 9, Self.calls.contains(words[0]), UInt32(truncatingIfNeeded: words[4]) == UInt32.max,
            let descriptor = Int32(exactly: words[1])
        else { return nil }
        self.init(descriptor: descriptor, stackPointer: words[7], programCounter: words[8])
    }

    /// Reads where a thread of this process waits; `nil` if it does not wait like this, or the file is missing.
    package init?(thread: Int32) {
        guard let text = readSmallFile("/proc/self/task/\(thread)/syscall") else { return nil }
        self.init(ByteCursor(text))
    }
}

/// Reads again and again where one thread waits, at one system call each time.
///
/// It keeps the thread's file open. Once the thread has ended, every reading is `nil`, also if a later thread has its id.
package final class EpollWaitReader {
    private let file: OpenFile
    /// Nine words of at most 18 bytes, with spaces.
    private var buffer = [UInt8](repeating: 0, count: 256)

    /// Opens the file of a thread of this process; `nil` if it is missing.
    package init?(thread: Int32) {
        guard let file = OpenFile("/proc/self/task/\(thread)/syscall") else { return nil }
        self.file = file
    }

    /// Reads where the thread waits now; `nil` if it does not wait for events without an end.
    package func read() -> EpollWait? {
        let count = file.read(into: &buffer)
        return count > 0 ? EpollWait(ByteCursor(buffer, count: count)) : nil
    }
}
