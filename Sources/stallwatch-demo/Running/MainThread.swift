import Glibc
import LinuxSupport

/// The kernel's account of the main thread.
enum MainThread {
    /// How long the thread has been ready to run without a CPU since it began, in milliseconds: schedstat's second field.
    static func runnableMilliseconds() -> Double {
        let fields = readSmallFile("/proc/self/task/\(getpid())/schedstat")?.split(separator: " ") ?? []
        return fields.count > 1 ? (Double(fields[1]) ?? 0) / 1_000_000 : 0
    }
}
