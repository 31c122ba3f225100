/// The id and name of a thread of this process.
package struct ThreadIdentity: Sendable, Equatable {
    /// The thread's kernel id.
    package var id: Int32
    /// The thread's name in the kernel, at most 15 bytes; `nil` if the thread has ended.
    package var name: String?

    package init(id: Int32, name: String?) {
        self.id = id
        self.name = name
    }

    /// Creates the identity of the thread `id` with its current name.
    package init(_ id: Int32) {
        self.init(id: id, name: readSmallFile("/proc/self/task/\(id)/comm").map(firstLine))
    }

    /// Returns the kernel ids of all threads of this process, in ascending order.
    package static func all() -> [Int32] {
        (directoryEntries("/proc/self/task") ?? []).compactMap { Int32($0.name) }.sorted()
    }
}
