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
