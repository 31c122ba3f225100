internal import CLinux
import LinuxSupport
import Dispatch
import Synchronization

/// Tells which thread runs a serial dispatch queue at the moment.
///
/// libdispatch keeps the owner's kernel id in the low 30 bits of the queue's state word, `dq_state` (queue_internal.h and
/// lock.h: DLOCK_OWNER_MASK), 56 bytes into the C object on 64-bit Linux. A `DispatchQueue` is a Swift object there, whose
/// only property is the C object's address. Both are private layouts, so they are checked on the queue itself: an item that
/// runs on it must find its own thread there. Until then, and if not, the answer is `unknown`.
final class QueueOwner: Sendable {
    static let stateOffset: UInt64 = 56
    /// Behind the type and the reference count of a Swift object.
    static let wrappedOffset: UInt64 = 16
    static let ownerMask: UInt64 = 0x3fff_ffff

    private let queue: DispatchQueue
    private let memory = GuardedMemory()
    private let isConfirmed = Atomic<Bool>(false)

    init(_ queue: DispatchQueue) {
        self.queue = queue
    }

    /// To be called by an item that runs on the queue.
    func check() {
        guard !isConfirmed.load(ordering: .relaxed) else { return }
        isConfirmed.store(owner() == UInt64(clinux_gettid()), ordering: .relaxed)
    }

    /// Who runs a queue.
    enum Answer: Equatable {
        case thread(Int32)
        /// No thread does: the queue has nothing to do, is suspended, or waits for its target.
        case nobody
        /// It cannot be known.
        case unknown
    }

    /// Who runs the queue now.
    func answer() -> Answer {
        guard isConfirmed.load(ordering: .relaxed), let thread = Int32(exactly: owner()) else { return .unknown }
        return thread == 0 ? .nobody : .thread(thread)
    }

    private func owner() -> UInt64 {
        // The queue is alive, since it is retained here; that its layout is the expected one is not known.
        let object = UInt64(UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque()))
        guard let wrapped = memory.word(at: object + Self.wrappedOffset),
            let state = memory.word(at: wrapped &+ Self.stateOffset)
        else { return 0 }
        return state & Self.ownerMask
    }
}
