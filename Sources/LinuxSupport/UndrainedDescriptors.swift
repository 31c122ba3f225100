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
    /// The number of times that one look compares: libdispatch waits for a ready descriptor for microseconds only.
    private static let comparisons = 30

    /// The epoll instances; `nil` before the first look.
    private var instances: [Int32]?
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

    /// Looks at all descriptors once; takes up to a millisecond.
    package mutating func look() {
        looks += 1
        for comparison in 0..<Self.comparisons {
            let awaited = awaitedDescriptors()
            if looks == 1, comparison == 0 {
                for descriptor in awaited.keys {
                    guard let link = readLink("/proc/self/fd/\(descriptor)") else { continue }
                    candidates[descriptor] = Candidate(link: link, bytes: 0)
                }
            }
            for (descriptor, candidate) in candidates {
                let bytes = clinux_unread_bytes(descriptor)
                if bytes < candidate.bytes || awaited[descriptor] == nil {
                    candidates[descriptor] = nil
                } else {
                    candidates[descriptor]?.bytes = bytes
                    if awaited[descriptor] == true { candidates[descriptor]?.isAwaited = true }
                }
            }
            if candidates.isEmpty { return }
        }
        candidates = candidates.filter { readLink("/proc/self/fd/\($0.key)") == $0.value.link }
    }

    /// Returns the descriptors in all instances, and whether an instance waits until each is readable.
    private mutating func awaitedDescriptors() -> [Int32: Bool] {
        let instances = instances ?? Self.findInstances()
        self.instances = instances
        var awaited: [Int32: Bool] = [:]
        for instance in instances {
            for line in (readSmallFile("/proc/self/fdinfo/\(instance)") ?? "").split(separator: "\n") {
                // "tfd:        7 events:       19 data: …"
                let words = line.split(separator: " ")
                guard words.count >= 4, words[0] == "tfd:", words[2] == "events:", let descriptor = Int32(words[1]),
                    let events = UInt32(words[3], radix: 16)
                else { continue }
                // EPOLLIN without EPOLLET, which reports a descriptor only when it becomes ready (sys/epoll.h).
                awaited[descriptor] = awaited[descriptor] == true || events & 1 != 0 && events & 1 << 31 == 0
            }
        }
        return awaited
    }

    private static func findInstances() -> [Int32] {
        let numbers = (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }
        return numbers.sorted().prefix(maximumDescriptors).filter {
            readLink("/proc/self/fd/\($0)") == "anon_inode:[eventpoll]"
        }
    }
}
