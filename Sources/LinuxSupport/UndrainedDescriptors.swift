internal import CLinux
import Glibc

/// A search for descriptors that stay readable though libdispatch asks for their input repeatedly: the app reads none.
///
/// libdispatch waits with EPOLLONESHOT: the kernel disarms a descriptor's entry when it reports input, and libdispatch
/// arms it again after the handler. It does not arm the entry of a suspended source. An entry that was disarmed and is
/// armed again, twice, while the descriptor is readable in all comparisons and never holds fewer bytes than before,
/// therefore proves that the handler runs and reads nothing. Resuming a source arms it once.
///
/// Each look reads the files of the epoll instances in /proc/self/fdinfo (proc_pid_fdinfo(5)), and asks poll(2) and
/// FIONREAD, which change nothing. Only pipes, terminals and stream sockets count: the kernel says how many bytes they
/// hold.
package struct UndrainedDescriptors {
    private struct Candidate {
        var link: String
        var bytes = 0
        var isArmed = true
        var rearmed = 0
    }

    /// The number of updates after which a descriptor counts.
    package static let leastUpdates = 8
    private static let leastRearmed = 2
    /// The largest number of descriptors of the process that are searched for instances.
    private static let maximumDescriptors = 1_024
    /// In one look: one in 60 to 500 shows an armed entry, which libdispatch's thread keeps armed for under 1 µs.
    private static let readings = 300
    /// In nanoseconds; without it, 1 of 1,000 to 7,000 readings shows an armed entry, as each locks the instance.
    private static let leastPause: UInt64 = 20_000
    /// The longest time on a CPU for one look, in nanoseconds: a program may have many instances with many entries.
    private static let longestLook: UInt64 = 50_000_000

    private var instances: [Int32] = []
    private var candidates: [Int32: Candidate] = [:]
    private var updates = 0

    package init() {}

    /// Whether every descriptor was drained: once not readable, or with fewer bytes than before.
    package var areAllDrained: Bool { updates > 0 && candidates.isEmpty }

    /// The descriptor not read in ``leastUpdates`` updates, such as `descriptor 7, pipe:[4711]`; `nil` without one.
    package var found: String? {
        guard updates >= Self.leastUpdates else { return nil }
        let found = candidates.filter { $0.value.rearmed >= Self.leastRearmed }.min { $0.key < $1.key }
        return found.map { "descriptor \($0.key), \($0.value.link)" }
    }

    /// Reads all descriptors once; takes some 20 ms, most of it asleep, if there is a candidate.
    package mutating func update() {
        updates += 1
        let begun = threadTimeNow()
        if updates == 1 { findCandidates() }
        for _ in 0..<Self.readings {
            guard threadTimeNow() &- begun < Self.longestLook else { break }
            for (descriptor, candidate) in candidates {
                let bytes = clinux_unread_bytes(descriptor)
                candidates[descriptor]?.bytes = bytes
                if bytes < candidate.bytes { candidates[descriptor] = nil }
            }
            if candidates.isEmpty { return }
            let before = threadTimeNow()
            for entry in instances.flatMap(Self.entries) {
                guard let candidate = candidates[entry.descriptor] else { continue }
                if entry.isArmed, !candidate.isArmed { candidates[entry.descriptor]?.rearmed += 1 }
                candidates[entry.descriptor]?.isArmed = entry.isArmed
            }
            // The app gets the locks for as long as they were held.
            usleep(UInt32(max(threadTimeNow() &- before, Self.leastPause) / 1_000))
        }
        candidates = candidates.filter { readLink("/proc/self/fd/\($0.key)") == $0.value.link }
    }

    private mutating func findCandidates() {
        let numbers = (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }
        for number in numbers.sorted().prefix(Self.maximumDescriptors)
        where readLink("/proc/self/fd/\(number)") == "anon_inode:[eventpoll]" {
            let entries = Self.entries(of: number)
            if !entries.isEmpty { instances.append(number) }
            for entry in entries {
                candidates[entry.descriptor] = readLink("/proc/self/fd/\(entry.descriptor)").map { Candidate(link: $0) }
            }
        }
    }

    private static func entries(of instance: Int32) -> [EpollEntry] {
        let text = EpollFiles.shared.text(of: instance) ?? ""
        return text.split(separator: "\n").compactMap(EpollEntry.init)
    }
}

/// The files of epoll instances in /proc/self/fdinfo, which show their entries (proc_pid_fdinfo(5)).
///
/// While it shows them the kernel holds the instance's lock, for which the app's calls wait (ep_show_fdinfo). So one
/// with many entries is left alone for a thousand times as long as it took, but no longer than ten seconds: the app may
/// reuse its number.
package final class EpollFiles: Sendable {
    package static let shared = EpollFiles()
    /// The time on a CPU beyond which a reading is too long, in nanoseconds: that of some hundred entries.
    static let longestReading: UInt64 = 500_000
    static let restFactor: UInt64 = 1_000
    /// In nanoseconds.
    static let longestRest: UInt64 = 10_000_000_000

    /// Until when instances are left alone, in monotonic nanoseconds.
    let rests = ProcessMutex<[Int32: UInt64]>([:])
    private let timeOnCPU: @Sendable () -> UInt64
    private let read: @Sendable (Int32) -> String?

    init(
        timeOnCPU: @escaping @Sendable () -> UInt64 = { threadTimeNow() },
        read: @escaping @Sendable (Int32) -> String? = { readSmallFile("/proc/self/fdinfo/\($0)") }
    ) {
        (self.timeOnCPU, self.read) = (timeOnCPU, read)
    }

    /// Returns the text of an instance's file; `nil` without one, and for an instance with many entries.
    package func text(of instance: Int32, at now: UInt64 = monotonicNow()) -> String? {
        let isResting = rests.withLock { rests in
            rests = rests.filter { now < $0.value }
            return rests[instance] != nil
        }
        guard !isResting else { return nil }
        let before = timeOnCPU()
        let text = read(instance)
        let time = timeOnCPU() &- before
        guard time > Self.longestReading else { return text }
        rests.withLock { $0[instance] = now &+ min(time &* Self.restFactor, Self.longestRest) }
        return nil
    }
}

/// A descriptor that an epoll instance reports once at a time, from a line of the instance's file in /proc/self/fdinfo.
struct EpollEntry: Equatable {
    /// EPOLLIN, EPOLLONESHOT and EPOLLET (include/uapi/linux/eventpoll.h).
    private static let (input, oneShot, edge): (UInt32, UInt32, UInt32) = (1, 1 << 30, 1 << 31)

    var descriptor: Int32
    /// Whether the next input is reported; libdispatch's other entries, for output, are never armed for input.
    var isArmed: Bool

    /// Parses a line such as "tfd:       22 events: 40004019 data: …" (fs/eventpoll.c); fails without EPOLLONESHOT.
    init?(line: Substring) {
        let words = line.split(separator: " ", maxSplits: 4)
        guard words.count >= 4, words[0] == "tfd:", words[2] == "events:", let descriptor = Int32(words[1]),
            let events = UInt32(words[3], radix: 16), events & Self.oneShot != 0, events & Self.edge == 0
        else { return nil }
        (self.descriptor, isArmed) = (descriptor, events & Self.input != 0)
    }
}
