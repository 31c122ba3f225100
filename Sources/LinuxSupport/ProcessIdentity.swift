import Glibc

/// A process, told from every other one: pids are used again, so the start time and the boot are needed too.
package struct ProcessIdentity: Sendable, Hashable {
    package var pid: Int32
    /// Field 22 of /proc/<pid>/stat: clock ticks since the boot.
    ///
    /// Unlike a time of day it never shifts with the clock.
    package var startTicks: UInt64
    /// The kernel's id of the boot.
    ///
    /// Hexadecimal digits and dashes.
    package var bootID: String

    /// The calling process; `nil` where /proc is not mounted.
    package static func current() -> ProcessIdentity? { ProcessIdentity(pid: getpid()) }

    /// The process that has the id `pid` now; `nil` when there is none.
    package init?(pid: Int32) {
        guard let stat = readSmallFile("/proc/\(pid)/stat").flatMap(ProcessStat.init),
            let bootID = readSmallFile("/proc/sys/kernel/random/boot_id").map(firstLine)
        else { return nil }
        // A zombie is gone. Where only the first thread has ended (as in a program that calls dispatchMain), others live.
        guard stat.state != "Z" || stat.threads > 1 else { return nil }
        self.init(pid: pid, startTicks: stat.startTicks, bootID: bootID)
    }

    package init(pid: Int32, startTicks: UInt64, bootID: String) {
        self.pid = pid
        self.startTicks = startTicks
        self.bootID = bootID
    }

    /// Whether this very process still runs, as far as this one can see: a process on another host or in another pid
    /// namespace counts as gone.
    package var isAlive: Bool { ProcessIdentity(pid: pid) == self }
}

extension ProcessIdentity: LosslessStringConvertible {
    /// A form for file names: `4700-123456-5c9d0e2a…`.
    package var description: String { "\(pid)-\(startTicks)-\(bootID)" }

    /// Reads the form that ``description`` writes.
    package init?(_ description: String) {
        let parts = description.split(separator: "-", maxSplits: 2)
        guard parts.count == 3, let pid = Int32(parts[0]), let startTicks = UInt64(parts[1]) else { return nil }
        self.init(pid: pid, startTicks: startTicks, bootID: String(parts[2]))
    }
}
