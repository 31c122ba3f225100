/// System calls that end with EINTR when their thread is stopped and let go, instead of going on.
///
/// Source: signal(7), "Interruption of system calls and library functions by stop signals", and for the asynchronous I/O
/// calls io_getevents(2) and io_uring_enter(2). The kernel makes no difference between a stop signal and a stop by
/// ptrace(2): both send the thread through the same return path. Numbers from the kernel's
/// arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h (aarch64).
enum NeverRestartedCalls {
    /// Always interrupted.
    static let always: Set<Int> = Set([epollWait, epollPwait, epollPwait2, semop, semtimedop, rtSigtimedwait,
        ioGetevents, ioPgetevents, ioUringEnter].compactMap { $0 })

    /// Interrupted on a socket with SO_RCVTIMEO or SO_SNDTIMEO. Whether one is set is the app's business, and asking would
    /// be a system call on its socket: any socket counts.
    static let onSockets: Set<Int> = Set(socketOnly).union(anyDescriptor)

    /// Whether a thread that is blocked in the call `number` must not be stopped.
    ///
    /// - Parameter isSocket: Whether the call's first argument is a socket.
    static func contains(_ number: Int, isSocket: Bool) -> Bool {
        always.contains(number) || isSocket && onSockets.contains(number)
    }

    #if arch(x86_64)
        private static let epollWait: Int? = 232
        private static let epollPwait: Int? = 281
        private static let semop: Int? = 65
        private static let semtimedop: Int? = 220
        private static let rtSigtimedwait: Int? = 128
        private static let ioGetevents: Int? = 208
        private static let ioPgetevents: Int? = 333
        /// connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg.
        private static let socketOnly = [42, 43, 44, 45, 46, 47, 288, 299, 307]
        /// read, write, readv, writev.
        private static let anyDescriptor = [0, 1, 19, 20]
    #else
        private static let epollWait: Int? = nil
        private static let epollPwait: Int? = 22
        private static let semop: Int? = 193
        private static let semtimedop: Int? = 192
        private static let rtSigtimedwait: Int? = 137
        private static let ioGetevents: Int? = 4
        private static let ioPgetevents: Int? = 292
        /// connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg.
        private static let socketOnly = [203, 202, 206, 207, 211, 212, 242, 243, 269]
        /// read, write, readv, writev.
        private static let anyDescriptor = [63, 64, 65, 66]
    #endif
    // The same on every architecture: numbers from 424 on are.
    private static let epollPwait2: Int? = 441
    private static let ioUringEnter: Int? = 426
}
