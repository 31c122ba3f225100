import StallReports
import LinuxSupport
import Glibc
import Synchronization

/// The ids of reports that this process's monitors are writing; their files must not be removed or recovered.
enum OpenReports {
    private static let ids = Mutex<Set<String>>([])

    static func insert(_ id: String) { ids.withLock { _ = $0.insert(id) } }
    static func remove(_ id: String) { ids.withLock { _ = $0.remove(id) } }
    static func contains(_ id: String) -> Bool { ids.withLock { $0.contains(id) } }
}
