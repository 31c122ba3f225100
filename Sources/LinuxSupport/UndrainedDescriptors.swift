internal import CLinux
import Glibc

/// A search for descriptors that stay readable although an epoll instance of this process waits for them: nobody reads
/// them.
///
/// Each look reads the instances' files in /proc/self/fdinfo (proc_pid_fdinfo(5)), and asks poll(2) and FIONREAD, which
/// change nothing. Only pipes, terminals and stream sockets count: the kernel says how many bytes they hold. A
/// descriptor is *drained* if it was once not readable, or held fewer bytes than before.
package struct UndrainedDescriptors {
    private struct Candidate {
        var link: String
        var bytes: Int
        /// Whether an instance was once seen to wait for it: libdispatch leaves suspended sources in the instance.
        var isAwaited = false
    }

    /// The number of looks after which a descriptor counts.
    package static let leastLooks = 8
    /// The largest number of descriptors of the process that are searched for instances.
    private static let maximumDescriptors = 1_024
    /// The number of comparisons in one look.
    private static let comparisons = 30
    /// The number of readings in one look: libdispatch waits for a ready descriptor for less than a microsecond each time.
    private static let readings: Int32 = 300

    /// The epoll instances.
    private var instances: [Int32] = []
    private var candidates: [Int32: Candidate] = [:]
    private var looks = 0

    package init() {}

    /// Whether every descriptor was drained.
    package var areAllDrained: Bool { looks > 0 && candidates.isEmpty }

    /// The descriptor that nobody has drained in ``leastLooks`` looks, such as `descriptor 7, pipe:[4711]`; `nil` if
    /// there is none.
    package var found: String? {
        guard looks >= Self.leastLooks else { return nil }
        let found = candidates.filter(\.value.isAwaited).min { $0.key < $1.key }
        return found.map { "descriptor \($0.key), \($0.value.link)" }
    }

    /// Looks at all descriptors once; takes some milliseconds if there is a candidate.
    package mutating func look() {
        looks += 1
        if looks == 1 { findCandidates() }
        for _ in 0..<Self.comparisons {
            for (descriptor, candidate) in candidates {
                let bytes = clinux_unread_bytes(descriptor)
                candidates[descriptor]?.bytes = bytes
                if bytes < candidate.bytes { candidates[descriptor] = nil }
            }
            if candidates.isEmpty { return }
        }
        for (descriptor, candidate) in candidates {
            if readLink("/proc/self/fd/\(descriptor)") != candidate.link {
                candidates[descriptor] = nil
            } else if !candidate.isAwaited {
                let isAwaited = isAwaited(descriptor)
                candidates[descriptor]?.isAwaited = isAwaited
            }
        }
    }

    private func isAwaited(_ descriptor: Int32) -> Bool {
        instances.contains { instance in
            let info = open("/proc/self/fdinfo/\(instance)", O_RDONLY | O_CLOEXEC)
            guard info >= 0 else { return false }
            defer { close(info) }
            return clinux_awaits_input(info, descriptor, Self.readings)
        }
    }

    /// Finds the epoll instances, and the descriptors in them.
    private mutating func findCandidates() {
        let numbers = (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }
        instances = numbers.sorted().prefix(Self.maximumDescriptors).filter {
            readLink("/proc/self/fd/\($0)") == "anon_inode:[eventpoll]"
        }
        for instance in instances {
            for line in (readSmallFile("/proc/self/fdinfo/\(instance)") ?? "").split(separator: "\n") {
                // "tfd:        7 events:       19 data: …"
                let words = line.split(separator: " ", maxSplits: 2)
                guard words.count == 3, words[0] == "tfd:", let descriptor = Int32(words[1]),
                    let link = readLink("/proc/self/fd/\(descriptor)")
                else { continue }
                candidates[descriptor] = Candidate(link: link, bytes: 0)
            }
        }
    }
}
