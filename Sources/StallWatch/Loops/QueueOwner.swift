internal import CLinux
import Dispatch
import Synchronization

/// Finds the thread that currently runs a serial dispatch queue.
///
/// libdispatch keeps the owner's kernel thread id in the low 30 bits of the queue's state word, `dq_state`
/// (queue_internal.h, and DLOCK_OWNER_MASK in lock.h), 56 bytes into the object on 64-bit Linux. This layout is
/// private. Therefore an item that runs on the queue checks that its own thread is there. Until that check succeeds,
/// the answer is `unknown`.
final class QueueOwner: Sendable {
    static let stateOffset = 56
    static let ownerMask: UInt64 = 0x3fff_ffff

    private let queue: DispatchQueue
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
        case nobody
        /// The owner cannot be determined.
        case unknown
    }

    /// Returns the thread that runs the queue now.
    func answer() -> Answer {
        guard isConfirmed.load(ordering: .relaxed), let thread = Int32(exactly: owner()) else { return .unknown }
        return thread == 0 ? .nobody : .thread(thread)
    }

    private func owner() -> UInt64 {
        // In bounds: `self` retains the queue, and its C object has 128 bytes.
        let object = Unmanaged.passUnretained(queue).toOpaque()
        return object.load(fromByteOffset: Self.stateOffset, as: UInt64.self) & Self.ownerMask
    }
}
