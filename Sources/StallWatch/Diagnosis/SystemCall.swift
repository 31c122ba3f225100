import LinuxSupport

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
