/// The time in nanoseconds that CPU quotas have throttled a thread's cgroups since they were first read.
///
/// Covers the thread's cgroup and its visible ancestors, because a quota limits all groups inside. If the thread moves
/// to another cgroup, its total stays and the new group adds to it.
package struct CPUQuota {
    /// The maximum number of nested groups that are read.
    static let maximumDepth = 8

    private var membership: String?
    private var files: [OpenFile] = []
    private var buffer = [UInt8](repeating: 0, count: 1024)
    private var last: UInt64 = 0
    private var total: UInt64 = 0

    package init() {}

    /// Whether the CPU statistics of the calling thread's cgroup, or of one around it, can be read.
    ///
    /// A group without a quota has none of the fields, and throttles no thread.
    package static var isReadable: Bool {
        candidates(readSmallFile("/proc/thread-self/cgroup") ?? "").contains { readSmallFile($0) != nil }
    }

    /// Returns the throttled time so far, in nanoseconds, including the time since the last call.
    package mutating func throttled(thread: Int32) -> UInt64 {
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

    /// Parses `throttled_usec` of a cgroup v2 cpu.stat file, or `throttled_time` (nanoseconds) of a v1 file.
    ///
    /// - Parameter cursor: The file's text.
    /// - Returns: The throttled time in nanoseconds; `nil` if the file has neither field.
    static func throttledTime(_ cursor: ByteCursor) -> UInt64? {
        var cursor = cursor
        if cursor.skip(pastLinePrefix: "throttled_usec ") { return cursor.number().map { $0 * 1_000 } }
        return cursor.skip(pastLinePrefix: "throttled_time ") ? cursor.number() : nil
    }

    /// Returns the paths of the cpu.stat files for a text of /proc/<pid>/cgroup (cgroups(7)), innermost first.
    ///
    /// Some may not exist: inside a container, a part of the path may not be visible.
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
