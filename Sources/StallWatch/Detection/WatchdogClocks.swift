import LinuxSupport

/// The clocks that show whether the watchdog itself was late; a reading costs one `pread` and two vDSO calls.
///
/// It is created and used on the watchdog's thread, because it keeps that thread's own file open.
final class WatchdogClocks {
    private let schedstat = OpenFile("/proc/thread-self/schedstat")
    /// Three numbers of at most 20 digits (proc(5)).
    private var buffer = [UInt8](repeating: 0, count: 64)

    /// Reads the clocks.
    ///
    /// If the kernel does not record these times (CONFIG_SCHED_INFO), the thread appears never to have run or waited.
    ///
    /// - Parameter capturing: The total time of captures so far, in nanoseconds. Their CPU time counts twice, which
    ///   hardly matters: a long capture spends its time waiting.
    /// - Returns: The clocks now.
    func read(capturing: UInt64) -> GapDetector.Reading {
        var occupied = capturing
        if let count = schedstat?.read(into: &buffer), count > 0 {
            var numbers = ByteCursor(buffer, count: count)
            occupied += (numbers.number() ?? 0) + (numbers.number() ?? 0)
        }
        return GapDetector.Reading(monotonic: monotonicNow(), boot: bootTimeNow(), occupied: occupied)
    }
}
