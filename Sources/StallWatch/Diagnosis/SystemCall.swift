import StackCapture

/// A system call that a thread waits in.
struct SystemCall: Equatable, Sendable {
    var number: Int
    /// All six argument registers, whether the call uses them or not.
    var arguments: [UInt64]
    var stackPointer: UInt64
    /// The address after the instruction that made the call.
    var programCounter: UInt64

    /// Returns one argument, or 0 if the index is out of range.
    func argument(_ index: Int) -> UInt64 {
        arguments.indices.contains(index) ? arguments[index] : 0
    }
}

extension SystemCall {
    /// Creates the call that a stop has met a blocked thread in; `nil` if the stack is of another capture.
    ///
    /// The call has begun again since then (ptrace(2)), so its arguments are still valid. The stop shows no stack pointer
    /// of the call's own.
    init?(ofStopped stack: CapturedStack) {
        guard stack.method == .ptrace, stack.threadState == .blocked, let call = stack.call, let number = call.number
        else { return nil }
        self.init(
            number: number, arguments: call.arguments, stackPointer: 0,
            programCounter: stack.frames.first?.address ?? 0
        )
    }
}
