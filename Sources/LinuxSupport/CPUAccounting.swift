import Glibc

/// The time in nanoseconds that CPU quotas have throttled a thread's cgroups since they were first read.
///
/// Covers the thread's cgroup and its visible ancestors. If it moves to another one, that adds to its total.
package struct CPUQuota {
    static let maximumDepth = 8
    /// The age from which on a thread's groups are read again, in nanoseconds: a stall may follow soon after a move.
    static let longestAge: UInt64 = 100_000_000

    private let readGroups: @Sendable (Int32) -> String?
    private var membership: String?
    /// Names the groups whose files could be opened; with few free descriptors one may be missing.
    private var key = ""
    /// The thread whose groups were read, and when, in monotonic nanoseconds.
    private var read: (thread: Int32, at: UInt64)?
    private var files: [OpenFile] = []
    private var buffer = [UInt8](repeating: 0, count: 1024)
    private var last: UInt64 = 0
    private var total: UInt64 = 0

    package init() { self.init(groups: { readSmallFile("/proc/self/task/\($0)/cgroup") }) }

    init(groups: @escaping @Sendable (Int32) -> String?) { readGroups = groups }

    /// Whether the CPU statistics of the calling thread's cgroup, or of one around it, can be read.
    package static var isReadable: Bool {
        candidates(readSmallFile("/proc/thread-self/cgroup") ?? "").contains { readSmallFile($0) != nil }
    }

    /// Whether no quota of a cgroup around the calling thread's is hidden: by a cgroup namespace (cgroup_namespaces(7)), or
    /// because the statistics cannot be read.
    package static var seesAll: Bool {
        isReadable && readLink("/proc/self/ns/cgroup") == "cgroup:[\(initialNamespace)]"
    }

    /// PROC_CGROUP_INIT_INO of linux/proc_ns.h.
    private static let initialNamespace: UInt32 = 0xefff_fffb

    /// The smallest number of CPUs that a quota of a process's cgroups allows it at a time; `nil` without a visible quota.
    package static func limit(ofProcess pid: Int32) -> Double? {
        candidates(readSmallFile("/proc/\(pid)/cgroup") ?? "").compactMap { statistics in
            let group = statistics.dropLast("stat".count)
            let old = ["cfs_quota_us", "cfs_period_us"].compactMap { readSmallFile("\(group)\($0)") }
            return limit(readSmallFile("\(group)max") ?? old.joined(separator: " "))
        }.min()
    }

    /// Parses a quota and its period: cpu.max of cgroup v2, or the two files of v1; `nil` for `max` and for -1.
    static func limit(_ text: String) -> Double? {
        let numbers = text.split { $0 == " " || $0 == "\n" }.compactMap { Double($0) }
        guard numbers.count == 2, numbers[0] > 0, numbers[1] > 0 else { return nil }
        return numbers[0] / numbers[1]
    }

    /// Returns the throttled time so far, in nanoseconds, including the time since the last call.
    package mutating func throttled(thread: Int32, at time: UInt64 = monotonicNow()) -> UInt64 {
        if read?.thread != thread || time &- (read?.at ?? 0) >= Self.longestAge {
            read = (thread, time)
            let membership = readGroups(thread)
            if membership != self.membership {
                // What the last group has lost since; no more if it is gone.
                let lost = now(at: time)
                total += lost &- min(last, lost)
                self.membership = membership
                files = Self.candidates(membership ?? "").compactMap(OpenFile.shared)
                key = "\(files.count) \(membership ?? "")"
                last = now(at: time)
            }
        }
        let now = now(at: time)
        total += now - min(last, now)
        last = now
        return total
    }

    private mutating func now(at time: UInt64) -> UInt64 {
        guard !files.isEmpty else { return 0 }
        return ThrottledTime.shared.of(key, at: time) {
            var sum: UInt64 = 0
            for file in files {
                let count = file.read(into: &buffer)
                sum += Self.throttledTime(ByteCursor(buffer, count: count)) ?? 0
            }
            return sum
        }
    }

    /// Parses `throttled_usec` of a cgroup v2 cpu.stat, or `throttled_time` (nanoseconds) of v1, to nanoseconds.
    static func throttledTime(_ cursor: ByteCursor) -> UInt64? {
        var cursor = cursor
        if cursor.skip(pastLinePrefix: "throttled_usec ") { return cursor.number().map { $0 * 1_000 } }
        return cursor.skip(pastLinePrefix: "throttled_time ") ? cursor.number() : nil
    }

    /// Returns the paths of the cpu.stat files for a text of /proc/<pid>/cgroup (cgroups(7)), innermost first.
    package static func candidates(_ membership: String) -> [String] {
        membership.split(separator: "\n").flatMap { line -> [String] in
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3, fields[1].isEmpty || fields[1].split(separator: ",").contains("cpu") else {
                return []
            }
            let roots = fields[1].isEmpty ? ["", "/unified"] : ["/\(fields[1])"]
            let path = fields[2].split(separator: "/")
            return (0...path.count).suffix(maximumDepth).reversed().flatMap { depth in
                let inner = path.prefix(depth).map { "/\($0)" }.joined()
                return roots.map { "/sys/fs/cgroup\($0)\(inner)/cpu.stat" }
            }
        }
    }
}

/// The throttled time of the groups that were asked for last.
///
/// Mostly all threads are in the same ones, and the kernel may have to add up the numbers of all CPUs.
final class ThrottledTime: Sendable {
    static let shared = ThrottledTime()
    /// The age from which on they are read again, in nanoseconds.
    static let longestAge: UInt64 = 10_000_000

    private struct Last {
        var groups: String?
        var time: UInt64 = 0
        var throttled: UInt64 = 0
    }
    private let last = ProcessMutex(Last())

    /// Returns the throttled time of some groups, which `read` returns if no thread has just asked for it.
    func of(_ groups: String?, at time: UInt64, _ read: () -> UInt64) -> UInt64 {
        last.withLock { last in
            if last.groups == groups, time &- min(last.time, time) < Self.longestAge { return last.throttled }
            last = Last(groups: groups, time: time, throttled: read())
            return last.throttled
        }
    }
}

/// The kernel's unit of times in /proc, in nanoseconds: usually 10 ms (sysconf(3)).
package let clockTick = 1_000_000_000 / UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))

/// A reading of each CPU's steal time (proc_stat(5)): while the host of a virtual machine did not run its CPU, a
/// thread's own clocks count neither time on a CPU nor waiting for one.
package struct CPUSteal: Sendable {
    /// The share of stolen time above which a measurement says little; a host takes a CPU for some 10 ms each time.
    package static let disturbingShare = 0.01

    /// The time of the reading, in nanoseconds of the monotonic clock.
    package let time: UInt64
    /// The steal time of each CPU; empty if the kernel does not provide it.
    private let ticks: [UInt64]

    /// Reads /proc/stat: 50 us with two CPUs, more with each other one, as the kernel adds up all interrupts.
    package init() {
        self.init(readSmallFile("/proc/stat") ?? "", at: monotonicNow())
    }

    /// Parses /proc/stat, read at `time` in monotonic nanoseconds: `cpu`, number, and times; the eighth is steal.
    package init(_ text: String, at time: UInt64) {
        var (cursor, ticks) = (ByteCursor(text), [UInt64]())
        // The first line is the sum over all CPUs.
        if cursor.skip(pastLinePrefix: "cpu ") {
            while cursor.skip(pastLinePrefix: "cpu"), cursor.number() != nil {
                cursor.skipWords(7)
                guard let stolen = cursor.number() else { break }
                ticks.append(stolen)
            }
        }
        self.ticks = ticks
        self.time = time
    }

    package var hasValues: Bool { !ticks.isEmpty }

    /// Returns the time stolen from the most affected CPU until a later reading, in nanoseconds.
    package func longest(until end: CPUSteal) -> UInt64 {
        (taken(until: end).max() ?? 0) * clockTick
    }

    /// Returns the share of all CPUs' time stolen until a later reading, 0 to 1.
    package func share(until end: CPUSteal) -> Double {
        let whole = Double(end.time &- time) * Double(ticks.count)
        guard whole > 0 else { return 0 }
        return min(Double(taken(until: end).reduce(0, +) * clockTick) / whole, 1)
    }

    /// Whether the share stolen since this reading is above ``disturbingShare``; reads /proc/stat again.
    package var isDisturbing: Bool { share(until: CPUSteal()) > Self.disturbingShare }

    private func taken(until end: CPUSteal) -> [UInt64] {
        zip(ticks, end.ticks).map { before, after in after - min(before, after) }
    }
}

/// The share of the last ten seconds in which some task was delayed, in percent (PSI `some avg10`: psi.rst).
package struct Pressure: Equatable, Sendable {
    package var cpu: Double?
    package var io: Double?
    package var memory: Double?

    /// Reads the current values in about 20 us; `nil` if the kernel provides none.
    package static func current() -> Pressure? {
        let pressure = Pressure(cpu: average("cpu"), io: average("io"), memory: average("memory"))
        return pressure == Pressure() ? nil : pressure
    }

    private static func average(_ resource: String) -> Double? {
        readSmallFile("/proc/pressure/\(resource)").flatMap(average(in:))
    }

    /// Parses the `some avg10` value of a /proc/pressure file; `nil` if it is missing.
    static func average(in text: String) -> Double? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("some ") }
        return line?.split(separator: " ").first { $0.hasPrefix("avg10=") }.flatMap { Double($0.dropFirst(6)) }
    }
}
