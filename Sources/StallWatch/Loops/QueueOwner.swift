internal import CLinux
import LinuxSupport
import Dispatch
import Synchronization

/// Finds the thread that currently runs a serial dispatch queue.
///
/// The queue's state is read by its private layout, ``DispatchLayout``. Therefore an item that runs on the queue checks
/// that its own thread is there. Until that check succeeds, the answer is `unknown`.
final class QueueOwner: Sendable {
    private let queue: DispatchQueue
    private let memory = GuardedMemory()
    private let isConfirmed = Atomic<Bool>(false)

    init(_ queue: DispatchQueue) {
        self.queue = queue
    }

    /// Checks the layout, in an item that runs on the queue.
    func check() {
        guard !isConfirmed.load(ordering: .relaxed) else { return }
        isConfirmed.store(owner() == UInt64(clinux_gettid()), ordering: .relaxed)
    }

    /// The owner of a queue.
    enum Answer: Equatable {
        case thread(Int32)
        /// No thread: the queue is empty or suspended, or waits for its target queue.
        case noThread
        /// The owner cannot be determined.
        case unknown
    }

    /// Returns the thread that runs the queue now.
    func answer() -> Answer {
        guard isConfirmed.load(ordering: .relaxed), let thread = Int32(exactly: owner()) else { return .unknown }
        return thread == 0 ? .noThread : .thread(thread)
    }

    private func owner() -> UInt64 {
        // `self` retains the queue, but its layout may be another one: every word is read through the kernel.
        let object = UInt64(UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque()))
        guard let wrapped = memory.word(at: object + DispatchLayout.wrappedOffset),
            let state = memory.word(at: wrapped &+ DispatchLayout.stateOffset)
        else { return 0 }
        return state & DispatchLayout.ownerMask
    }
}
