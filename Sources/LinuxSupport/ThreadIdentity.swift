/// A thread of this process.
package struct ThreadIdentity: Sendable, Equatable {
    /// Its kernel id.
    package var id: Int32
    /// The name that the kernel has for it, 15 bytes at most; `nil` if it has ended.
    package var name: String?

    package init(id: Int32, name: String?) {
        self.id = id
        self.name = name
    }

    /// The thread with that id, and the name that it has now.
    package init(_ id: Int32) {
        self.init(id: id, name: readSmallFile("/proc/self/task/\(id)/comm").map(firstLine))
    }

    /// The kernel ids of all threads of this process, ascending.
    package static func all() -> [Int32] {
        (directoryEntries("/proc/self/task") ?? []).compactMap { Int32($0.name) }.sorted()
    }
}
