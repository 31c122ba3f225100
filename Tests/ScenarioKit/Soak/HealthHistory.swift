import CStalls
import Foundation
import Glibc

/// The resources of the process after each scenario, and their growth.
///
/// Readings fluctuate: pools end their threads after some time, and freed memory is kept. A leak is in every later reading.
/// So the growth is the least reading of the later half minus the least of the earlier half.
struct HealthHistory {
    /// Whether caches are filled and pools have their threads; only later readings count.
    private(set) var isWarm = false
    private(set) var readings: [ProcessHealth] = []
    /// The last reading, warm or not.
    private(set) var last: ProcessHealth?

    /// The least number of readings in each half; fewer would compare one scenario with another.
    static let leastPerHalf = 3

    mutating func warmUpIsOver() {
        isWarm = true
    }

    mutating func add(_ reading: ProcessHealth) {
        last = reading
        if isWarm { readings.append(reading) }
    }

    var growth: HealthGrowth? {
        let half = readings.count / 2
        guard half >= Self.leastPerHalf else { return nil }
        let earlier = readings.prefix(half)
        let later = readings.suffix(half)
        func grown(_ value: (ProcessHealth) -> Int) -> Int {
            // Neither is empty.
            (later.map(value).min() ?? 0) - (earlier.map(value).min() ?? 0)
        }
        return HealthGrowth(
            memory: grown(\.memory), descriptors: grown(\.descriptors), threads: grown(\.threads),
            mappings: grown(\.mappings)
        )
    }
}

/// The growth of the process from the earlier half of a soak to the later one.
struct HealthGrowth: Equatable, Encodable, Sendable {
    /// The growth of the memory that is allocated and not freed, in kilobytes.
    var memory: Int
    var descriptors: Int
    var threads: Int
    var mappings: Int

    /// The growth that is no leak.
    ///
    /// The outcomes of all scenarios stay until the end, some kilobytes each. There may be two more workers. A worker of a pool
    /// that has used its run loop keeps three descriptors for its life (two are its mode's), and every thread three mappings.
    static let margin = HealthGrowth(memory: 8 * 1024, descriptors: 6, threads: 4, mappings: 50)

    var problems: [String] {
        let all = [
            ("KB of memory", memory, Self.margin.memory), ("file descriptors", descriptors, Self.margin.descriptors),
            ("threads", threads, Self.margin.threads), ("mappings", mappings, Self.margin.mappings),
        ]
        return all.compactMap { name, growth, margin in
            growth > margin ? "\(growth) \(name) more than before, where \(margin) may be" : nil
        }
    }
}

/// The resources of the process that can leak, at one moment (proc_pid_status(5)).
struct ProcessHealth: Encodable, Equatable, Sendable {
    /// The memory that malloc(3) has handed out and that has not been freed, in kilobytes.
    ///
    /// Resident memory would say something else. glibc has up to eight arenas per processor, and each short-lived thread of a
    /// scenario's monitor may use another one. The free end of such an arena is up to twice as long as the largest block that
    /// was ever freed, and malloc_trim(3) returns that of the first arena only: after 80 stalls 300 MB were free and 4 in use.
    var memory: Int
    var resident: Int
    var descriptors: Int
    var threads: Int
    /// The number of lines of /proc/self/maps, which shows files that stay mapped.
    var mappings: Int
}

extension ProcessHealth {
    /// Reads the text of /proc/self/status; fails if a line is missing.
    init?(status: String, memory: Int, descriptors: Int, mappings: Int) {
        var values: [Substring: Int] = [:]
        for line in status.split(separator: "\n") {
            let fields = line.split(whereSeparator: { $0 == ":" || $0 == "\t" || $0 == " " })
            if fields.count > 1, let value = Int(fields[1]) { values[fields[0]] = value }
        }
        guard let resident = values["VmRSS"], let threads = values["Threads"] else { return nil }
        self.init(memory: memory, resident: resident, descriptors: descriptors, threads: threads, mappings: mappings)
    }

    static func now() throws(ScenariosFailure) -> ProcessHealth {
        let memory = stalls_allocated_bytes() / 1024
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let maps = try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
            let health = ProcessHealth(
                status: status, memory: memory, descriptors: descriptors,
                mappings: maps.utf8.count { $0 == UInt8(ascii: "\n") }
            )
        else { throw ScenariosFailure(.systemError, "/proc/self cannot be read: a soak needs it to detect leaks") }
        return health
    }
}

/// A child process that still exists when there should be none: a zombie, or a running one.
struct LeftChild: Equatable, Encodable, Sendable {
    var id: Int
    var name: String
    /// `Z` for a zombie (proc_pid_stat(5)).
    var state: String

    /// Reads the text of /proc/<pid>/stat; fails if the process is no child of `parent`.
    init?(stat: String, of parent: pid_t) {
        // The name is in parentheses and may contain some.
        guard let open = stat.firstIndex(of: "("), let close = stat.lastIndex(of: ")"), open < close else { return nil }
        let fields = stat[stat.index(after: close)...].split(separator: " ")
        guard let id = Int(stat[..<open].filter { $0 != " " }), fields.count > 1, Int(fields[1]) == Int(parent) else {
            return nil
        }
        self.id = id
        name = String(stat[stat.index(after: open)..<close])
        state = String(fields[0])
    }

    /// Returns all children, even those from clone(2) that end without a signal.
    static func all() throws(ScenariosFailure) -> [LeftChild] {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc") else {
            throw ScenariosFailure(.systemError, "/proc cannot be read: a soak needs it to find children")
        }
        return names.filter { Int($0) != nil }.compactMap { name in
            // A process that has just ended cannot be read. It was no child, because a child would be a zombie.
            (try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8))
                .flatMap { LeftChild(stat: $0, of: getpid()) }
        }
    }
}
