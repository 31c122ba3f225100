import LinuxSupport

/// The clocks by which the watchdog knows whether it was late itself: one `pread` a reading, and two vdso calls.
///
/// Made and used on the watchdog's thread, whose own file it keeps open.
final class WatchdogClocks {
    private let schedstat = OpenFile("/proc/thread-self/schedstat")
    /// Three numbers of 20 digits at most (proc(5)).
    private var buffer = [UInt8](repeating: 0, count: 64)

    /// The clocks now.
    ///
    /// Where the kernel keeps no such times (CONFIG_SCHED_INFO), the thread has never had, or waited for, a CPU.
    ///
    /// - Parameter capturing: How long captures have taken so far, in nanoseconds. Their time on a CPU counts twice, which
    ///   is next to nothing: a capture that takes long waits.
    func read(capturing: UInt64) -> GapDetector.Reading {
        var occupied = capturing
        if let count = schedstat?.read(into: &buffer), count > 0 {
            var numbers = ByteCursor(buffer, count: count)
            occupied += (numbers.number() ?? 0) + (numbers.number() ?? 0)
        }
        return GapDetector.Reading(monotonic: monotonicNow(), boot: bootTimeNow(), occupied: occupied)
    }
}
