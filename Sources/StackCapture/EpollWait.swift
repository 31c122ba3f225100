/// The place where a thread waits in epoll_wait(2) without a timeout, as SwiftNIO's loops do for all of their work.
package struct EpollWait: Sendable, Equatable {
    package var descriptor: Int32
    /// The thread's stack pointer and program counter: they tell a wait apart from others of the same thread.
    package var stackPointer: UInt64
    package var programCounter: UInt64

    package init(descriptor: Int32, stackPointer: UInt64, programCounter: UInt64) {
        self.descriptor = descriptor
        self.stackPointer = stackPointer
        self.programCounter = programCounter
    }

    #if arch(x86_64)
        /// The numbers of epoll_wait(2) and epoll_pwait(2) (asm/unistd_64.h).
        private static let calls: Set<Int> = [232, 281]
    #else
        /// The number of epoll_pwait(2) (asm-generic/unistd.h).
        private static let calls: Set<Int> = [22]
    #endif

    /// `nil` if the call is not such a wait.
    package init?(_ call: SystemCall) {
        // The timeout is an int: of its register, only the lower half counts.
        guard Self.calls.contains(call.number), UInt32(truncatingIfNeeded: call.argument(3)) == UInt32.max,
            let descriptor = Int32(exactly: call.argument(0))
        else { return nil }
        self.init(
            descriptor: descriptor, stackPointer: call.stackPointer, programCounter: call.programCounter)
    }
}

extension ThreadProbe {
    /// Reads where the thread waits now; `nil` if it does not wait for events without an end.
    package func epollWait() -> EpollWait? { read()?.shown?.call.flatMap(EpollWait.init) }
}
