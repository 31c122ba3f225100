import LinuxSupport

/// How long a thread's cgroups have been kept from running by their CPU quotas, in nanoseconds, while they were watched.
///
/// Its own cgroup and those around it, as far as they can be seen from here: a quota holds for all inside. A thread that
/// goes to another cgroup takes along what it has, and counts from there.
struct CPUQuota {
    /// Groups inside each other, followed at most.
    static let maximumDepth = 8

    private var membership: String?
    private var files: [OpenFile] = []
    private var buffer = [UInt8](repeating: 0, count: 1024)
    private var last: UInt64 = 0
    private var total: UInt64 = 0

    /// The throttled time so far.
    ///
    /// Grows by what the files say has passed since the last call.
    mutating func throttled(thread: Int32) -> UInt64 {
        let membership = readSmallFile("/proc/self/task/\(thread)/cgroup")
        if membership != self.membership {
            self.membership = membership
            files = Self.candidates(membership ?? "").compactMap(OpenFile.init)
            last = now()
        }
        let now = now()
        total += now - min(last, now)
        last = now
        return total
    }

    private mutating func now() -> UInt64 {
        var sum: UInt64 = 0
        for file in files {
            let count = file.read(into: &buffer)
            guard count > 0, let time = Self.throttledTime(ByteCursor(buffer, count: count)) else { continue }
            sum += time
        }
        return sum
    }

    /// `throttled_usec` of cgroup v2's cpu.stat, or `throttled_time` (nanoseconds) of v1's.
    static func throttledTime(_ cursor: ByteCursor) -> UInt64? {
        var cursor = cursor
        if cursor.skip(pastLinePrefix: "throttled_usec ") { return cursor.number().map { $0 * 1_000 } }
        return cursor.skip(pastLinePrefix: "throttled_time ") ? cursor.number() : nil
    }

    /// The cpu.stat files that /proc/<pid>/cgroup (cgroups(7)) leads to, innermost first.
    ///
    /// Those that are not there are left to be not opened: inside a container, a part of the path may not be visible.
    static func candidates(_ membership: String) -> [String] {
        var files: [String] = []
        func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
        for line in Array(membership.utf8).split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            let roots: [String]
            let controllers = fields[1].split(separator: UInt8(ascii: ",")).map(text)
            if controllers.isEmpty {
                roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            } else if controllers.contains("cpu") {
                roots = ["/sys/fs/cgroup/" + text(fields[1])]
            } else {
                continue
            }
            var path = fields[2].split(separator: UInt8(ascii: "/")).map(text).prefix(maximumDepth)
            while true {
                let group = path.map { "/\($0)" }.joined()
                files += roots.map { $0 + group + "/cpu.stat" }
                guard path.popLast() != nil else { break }
            }
        }
        return files
    }
}
