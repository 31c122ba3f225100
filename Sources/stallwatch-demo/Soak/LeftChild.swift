import Foundation
import Glibc

/// A child process that still exists when there should be none: a zombie, or a running one.
struct LeftChild: Equatable, Encodable, Sendable {
    var id: Int
    var name: String
    /// `Z` for a zombie (proc_pid_stat(5)).
    var state: String

    /// Reads the text of /proc/<pid>/stat.
    ///
    /// Fails if the process is no child of `parent`.
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
    static func all() throws(DemoFailure) -> [LeftChild] {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc") else {
            throw DemoFailure(.systemError, "/proc cannot be read: a soak needs it to find children")
        }
        return names.filter { Int($0) != nil }.compactMap { name in
            // A process that has just ended cannot be read. It was no child, because a child would be a zombie.
            (try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8))
                .flatMap { LeftChild(stat: $0, of: getpid()) }
        }
    }
}
