import StackCapture
import StallReports
import LinuxSupport

/// A system call and its target, in words.
struct DescribedCall: Equatable, Sendable {
    var number: Int
    var name: String
    var target: String?
    var purpose: SystemCall.Purpose

    init(_ call: SystemCall, memory: any MemoryReading) {
        number = call.number
        name = call.name
        target = call.target(memory: memory)
        purpose = call.purpose
    }
}

extension DescribedCall: CustomStringConvertible {
    /// `fsync(/var/lib/wal)`, or the name alone.
    var description: String { target.map { "\(name)(\($0))" } ?? name }
}
