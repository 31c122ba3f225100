import Glibc

/// The permanent identity of a process: its pid, start time and boot, because the kernel reuses pids.
package struct ProcessIdentity: Sendable, Hashable {
    package var pid: Int32
    /// The start time in clock ticks since the boot (field 22 of /proc/<pid>/stat).
    ///
    /// Does not change when the wall clock is set.
    package var startTicks: UInt64
    /// The kernel's id of the boot: hexadecimal digits and dashes.
    package var bootID: String

    /// Returns the identity of the calling process; `nil` if /proc is not mounted.
    package static func current() -> ProcessIdentity? { ProcessIdentity(pid: getpid()) }

    /// Reads the identity of the process that currently has the id `pid`; `nil` if there is none.
    package init?(pid: Int32) {
        guard let stat = Self.stat(ofRunning: pid),
            let bootID = readSmallFile("/proc/sys/kernel/random/boot_id").map(firstLine)
        else { return nil }
        self.init(pid: pid, startTicks: stat.startTicks, bootID: bootID)
    }

    /// Returns whether the process that currently has the id `pid` runs.
    package static func isRunning(_ pid: Int32) -> Bool { stat(ofRunning: pid) != nil }

    private static func stat(ofRunning pid: Int32) -> ProcessStat? {
        guard let stat = readSmallFile("/proc/\(pid)/stat").flatMap(ProcessStat.init) else { return nil }
        // A zombie counts as gone, unless only its first thread has ended (as in a program that calls dispatchMain).
        return stat.state != "Z" || stat.threads > 1 ? stat : nil
    }

    package init(pid: Int32, startTicks: UInt64, bootID: String) {
        self.pid = pid
        self.startTicks = startTicks
        self.bootID = bootID
    }

    /// Whether this process still runs.
    ///
    /// A process on another host or in another pid namespace counts as gone.
    package var isAlive: Bool { ProcessIdentity(pid: pid) == self }
}

extension ProcessIdentity: LosslessStringConvertible {
    /// The identity in a form for file names: `4700-123456-5c9d0e2a…`.
    package var description: String { "\(pid)-\(startTicks)-\(bootID)" }

    /// Parses the form that ``description`` produces.
    package init?(_ description: String) {
        let parts = description.split(separator: "-", maxSplits: 2)
        guard parts.count == 3, let pid = Int32(parts[0]), let startTicks = UInt64(parts[1]) else { return nil }
        self.init(pid: pid, startTicks: startTicks, bootID: String(parts[2]))
    }
}
