import LinuxSupport
import StackCapture

/// What blocked threads have asked the kernel for, as their calls showed it before a stop.
///
/// After a stop a sleep goes on as restart_syscall(2), and for sleep(3) the kernel has written the time that remains in
/// place of the time that was asked for (nanosleep(2)). So every look at a thread comes here first.
final class AskedCalls {
    /// The number of threads whose calls are kept.
    static let maximumThreads = 512

    private var asked: [Int32: (call: SystemCall, target: String?)] = [:]
    private let memory: any MemoryReading

    init(memory: any MemoryReading = GuardedMemory()) { self.memory = memory }

    /// Notes the call in a reading of a thread; a restarted one gets the number and arguments back that it was seen with.
    func look(at reading: inout ThreadReading, of thread: Int32) {
        guard case .waiting(let call)? = reading.shown else { return }
        if call.isRestarted {
            if let known = asked[thread]?.call, known.isSameWait(as: call) { reading.shown = .waiting(known) }
        } else {
            if asked.count >= Self.maximumThreads, asked[thread] == nil { asked.removeAll() }
            asked[thread] = (call, call.takesTime ? call.target(memory: memory) : nil)
        }
    }

    /// Describes the call that a thread waits in, with the time that it has asked for; without a file that is not its own.
    func describe(_ call: SystemCall, of thread: Int32) -> DescribedCall {
        // Elsewhere the memory shows what was asked for, also of a sleep that no look has met before a stop.
        guard call.takesTime, call.isTimeWrittenBack else {
            return DescribedCall(call, memory: call.hasLostFile(of: thread) ? nil : memory)
        }
        var described = DescribedCall(call, memory: nil)
        if let known = asked[thread], known.call.isSameWait(as: call) { described.target = known.target }
        return described
    }
}

extension SystemCall {
    fileprivate var takesTime: Bool { name == "nanosleep" || name == "clock_nanosleep" }

    /// Whether the kernel writes the time that remains over the time that was asked for.
    fileprivate var isTimeWrittenBack: Bool {
        let time = name == "nanosleep" ? 0 : 2
        return argument(time) == argument(time + 1)
    }

    /// A stop leaves a thread's stack pointer and program counter as they are.
    func isSameWait(as other: SystemCall) -> Bool {
        stackPointer == other.stackPointer && programCounter == other.programCounter
    }
}
