import StackCapture
import StallReports
import LinuxSupport

/// A system call and its target, in words.
struct DescribedCall: Equatable, Sendable {
    var number: Int
    var name: String
    var target: String?
    var purpose: SystemCall.Purpose

    /// Describes the call of a waiting thread.
    ///
    /// - Parameters:
    ///   - call: The call.
    ///   - memory: Reads the memory that the call's arguments point to; `nil` if the thread has left the call, because
    ///     the memory and the descriptor may have changed since.
    init(_ call: SystemCall, memory: (any MemoryReading)?) {
        number = call.number
        name = call.name
        target = memory.flatMap { call.target(memory: $0) }
        purpose = call.purpose
    }

    /// Describes the call that a running thread was captured in; `nil` if the call is not known.
    ///
    /// - Parameters:
    ///   - captured: The call as the capture shows it.
    ///   - function: The libc function on top of the stack, which names the call if the code does not show its number.
    ///   - memory: Reads the memory that the call's arguments point to.
    init?(_ captured: CapturedStack.Call, function: String?, memory: any MemoryReading) {
        guard let number = captured.number ?? function.flatMap(SystemCallNames.current.number) else { return nil }
        let call = SystemCall(number: number, arguments: captured.arguments, stackPointer: 0, programCounter: 0)
        guard captured.hasReturned else {
            self.init(call, memory: memory)
            return
        }
        self.init(number: number, name: call.name, target: nil, purpose: call.purpose)
        // By now the descriptor may be another file's, and a path overwritten.
        if call.takesDescriptor { target = captured.target }
    }

    private init(number: Int, name: String, target: String?, purpose: SystemCall.Purpose) {
        self.number = number
        self.name = name
        self.target = target
        self.purpose = purpose
    }
}

extension DescribedCall: CustomStringConvertible {
    /// `fsync(/var/lib/wal)`, or the name alone.
    var description: String { target.map { "\(name)(\($0))" } ?? name }
}
