/// The place where a thread waits in epoll_wait(2) without a timeout, as SwiftNIO's loops do for all of their work.
package struct EpollWait: Sendable, Equatable {
    package var descriptor: Int32
    /// The thread's stack pointer and program counter: they tell a wait apart from others of the same thread.
    package var stackPointer: UInt64
    package var programCounter: UInt64

    #if arch(x86_64)
        /// The numbers of epoll_wait(2) and epoll_pwait(2) (asm/unistd_64.h).
        private static let calls: Set<UInt64> = [232, 281]
    #else
        /// The number of epoll_pwait(2) (asm-generic/unistd.h).
        private static let calls: Set<UInt64> = [22]
    #endif
}

extension EpollWait {
    /// Parses /proc/…/syscall; `nil` if the thread does not wait like this.
    package init?(_ text: ByteCursor) {
        // The number, six arguments, the stack pointer and the program counter (proc(5)).
        var text = text
        var words: [UInt64] = []
        while words.count < 9, let word = text.number() { words.append(word) }
        // The timeout is an int: of its register, only the lower half counts.
        guard words.count == 9, Self.calls.contains(words[0]), UInt32(truncatingIfNeeded: words[4]) == UInt32.max,
            let descriptor = Int32(exactly: words[1])
        else { return nil }
        self.init(descriptor: descriptor, stackPointer: words[7], programCounter: words[8])
    }
}

extension ThreadProc {
    /// Where the thread waits now; `nil` if it does not wait for events without an end.
    package var epollWait: EpollWait? { text(.syscall).flatMap { EpollWait($0) } }
}
