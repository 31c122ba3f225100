/// A thread's CPU time at one moment, in clock ticks of 10 ms.
package struct CPUTicks: Equatable, Sendable {
    /// The time in user mode.
    package var user: UInt64
    /// The time in the kernel.
    package var system: UInt64
    /// The time of the reading, in monotonic nanoseconds.
    package var readAt: UInt64

    package init(
        user: UInt64,
        system: UInt64,
        readAt: UInt64
    ) {
        self.user = user
        self.system = system
        self.readAt = readAt
    }
}
