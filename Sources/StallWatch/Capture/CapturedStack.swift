/// A thread's stack at one moment, as addresses: copied, unwound, not yet named.
struct CapturedStack: Sendable, Equatable {
    /// How the stack was come by.
    enum Method: String, Sendable {
        /// The thread was blocked, and its stack was read from outside.
        case read
        /// The thread was stopped with ptrace for as long as the copy took.
        case ptrace
        /// The thread's own signal handler copied it.
        case signal
    }

    /// What the thread was doing when it was captured.
    enum ThreadState: String, Sendable {
        /// On CPU, or waiting for one.
        case running
        /// In a system call or a page fault that waits.
        case blocked
        /// The same, and no signal can end the wait (proc(5)'s state D).
        case uninterruptible
    }

    /// What a frame is.
    enum Kind: Sendable {
        /// A function on the thread's stack.
        case code
        /// An async function that waits for the one before it.
        case asyncCaller
        /// The same, and the last one: what ends the task.
        case taskStart
    }

    /// One frame, not yet named.
    struct Frame: Sendable, Equatable {
        /// The frame's program counter.
        var address: UInt64
        /// Whether `address` is the instruction itself.
        ///
        /// Otherwise it is a return address, one past the call.
        var isExact: Bool
        /// What the frame is.
        var kind = Kind.code

        /// An address inside the instruction that the frame is at: what names and lines are looked up by.
        var lookupAddress: UInt64 { isExact || address == 0 ? address : address - 1 }
    }

    var method: Method
    var threadState: ThreadState
    /// Innermost first.
    var frames: [Frame]
    /// Whether the last frame is the thread's first function.
    var isComplete: Bool
    /// Why it is not, in words; `nil` when it is.
    var incompleteReason: String?
    /// Why the callers of an async function on the stack are missing; `nil` when none are.
    var missingAsyncCallersReason: String?
    /// How long the thread was kept from running, in nanoseconds.
    var heldNanoseconds: UInt64
    /// How long the whole capture took on the watchdog's time, in nanoseconds.
    var captureNanoseconds: UInt64
}
