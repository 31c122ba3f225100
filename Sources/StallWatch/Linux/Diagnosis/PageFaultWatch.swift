import LinuxSupport
internal import CLinux

/// Finds the file whose pages a thread waits for.
///
/// The kernel records the addresses of major page faults through a software event of perf_event_open(2). The event must
/// be opened before the fault. It costs the thread less than a microsecond per major fault and nothing per minor fault.
/// So a watch is opened only while a turn is late and has waited for pages.
final class PageFaultWatch {
    private var watch: clinux_fault_watch
    /// The file of the last fault that could be resolved; `nil` if there was none.
    private(set) var file: String?

    /// Fails where the sysctl kernel.perf_event_paranoid is above 2, and under any seccomp filter.
    init?(thread: Int32) {
        var watch = clinux_fault_watch()
        // A seccomp filter, such as systemd's SystemCallFilter=, may kill the process for a call that it does not list.
        guard let status = readSmallFile("/proc/thread-self/status"), !ProcessStatus.mayHaveFilter(status),
            clinux_watch_faults(thread, &watch)
        else { return nil }
        // Set last: deinit runs even after a failed initializer once all properties are set.
        self.watch = watch
    }

    deinit { clinux_unwatch_faults(&watch) }

    /// Reads the last fault since the previous call, while its file is still mapped, and updates ``file``.
    func read() {
        var address: UInt64 = 0
        guard clinux_last_fault(&watch, &address), let maps = readSmallFile("/proc/self/maps", limit: maximumMaps),
            let file = mappedFile(at: address, in: maps)
        else { return }
        self.file = file
    }
}
