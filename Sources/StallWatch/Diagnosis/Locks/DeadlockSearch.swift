/// The threads that can never go on: a pure decision.
enum DeadlockSearch {
    /// Returns the threads that wait for each other in a cycle, and those that wait for one of these.
    ///
    /// - Parameter owners: For each thread that waits for a lock, the thread that owns it.
    /// - Returns: The threads.
    static func deadlocked(_ owners: [Int32: Int32]) -> Set<Int32> {
        var found: Set<Int32> = []
        for start in owners.keys {
            var path: Set<Int32> = []
            var next: Int32? = start
            while let thread = next, path.insert(thread).inserted { next = owners[thread] }
            // The path ended at a thread that waits for none, or came back to one of its own.
            if next != nil { found.insert(start) }
        }
        return found
    }
}
