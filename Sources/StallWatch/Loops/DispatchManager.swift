import Dispatch
import LinuxSupport
import Synchronization

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
