/// A thread's stack at one moment, as addresses: copied, unwound, not yet named.
package struct CapturedStack: Sendable, Equatable {
    /// How the stack was come by.
    package enum Method: String, Sendable {
        /// The thread was blocked, and its stack was read from outside.
        case read
        /// The thread was stopped with ptrace for as long as the copy took.
        case ptrace
        /// The thread's own signal handler copied it.
        case signal
    }

    /// What the thread was doing when it was captured.
    package enum ThreadState: String, Sendable {
        /// On CPU, or waiting for one.
        case running
        /// In a system call or a page fault that waits.
        case blocked
        /// The same, and no signal can end the wait (proc(5)'s state D).
        case uninterruptible
    }

    /// What a frame is.
    package enum Kind: Sendable {
        /// A function on the thread's stack.
        case code
        /// An async function that waits for the one before it.
        case asyncCaller
        /// The same, and the last one: what ends the task.
        case taskStart
    }

    /// One frame, not yet named.
    package struct Frame: Sendable, Equatable {
        /// The frame's program counter.
        package var address: UInt64
        /// Whether `address` is the instruction itself.
        ///
        /// Otherwise it is a return address, one past the call.
        var isExact: Bool
        /// What the frame is.
        package var kind = Kind.code

        package init(
            address: UInt64,
            isExact: Bool,
            kind: Kind = Kind.code
        ) {
            self.address = address
            self.isExact = isExact
            self.kind = kind
        }

        /// An address inside the instruction that the frame is at: what names and lines are looked up by.
        package var lookupAddress: UInt64 { isExact || address == 0 ? address : address - 1 }
    }

    package var method: Method
    package var threadState: ThreadState
    /// Innermost first.
    package var frames: [Frame]
    /// Whether the last frame is the thread's first function.
    package var isComplete: Bool
    /// Why it is not, in words; `nil` when it is.
    package var incompleteReason: String?
    /// Why the callers of an async function on the stack are missing; `nil` when none are.
    package var missingAsyncCallersReason: String?
    /// How long the thread was kept from running, in nanoseconds.
    package var heldNanoseconds: UInt64
    /// How long the whole capture took on the watchdog's time, in nanoseconds.
    package var captureNanoseconds: UInt64

    package init(
        method: Method, threadState: ThreadState, frames: [Frame], isComplete: Bool, incompleteReason: String? = nil,
        missingAsyncCallersReason: String? = nil, heldNanoseconds: UInt64, captureNanoseconds: UInt64
    ) {
        self.method = method
        self.threadState = threadState
        self.frames = frames
        self.isComplete = isComplete
        self.incompleteReason = incompleteReason
        self.missingAsyncCallersReason = missingAsyncCallersReason
        self.heldNanoseconds = heldNanoseconds
        self.captureNanoseconds = captureNanoseconds
    }
}
