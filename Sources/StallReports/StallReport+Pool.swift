extension StallReport {
    /// The pool of a thread that one task keeps.
    package struct Pool: Codable, Sendable, Equatable {
        /// The number of the pool's threads that are pinned, this one included.
        package var pinnedThreads: Int
        /// The most tasks of the thread's priority that run at the same time; `nil` for a task executor.
        package var width: Int?
        /// The number of tasks of that priority that waited for a thread; `nil` if it is not known.
        package var waitingTasks: Int?
        /// Whether the task computed, and was not blocked; `nil` if it was.
        package var isComputing: Bool?
        /// The class of the actor whose job the thread ran; `nil` if it was none's.
        package var actor: String?

        package init(
            pinnedThreads: Int, width: Int? = nil, waitingTasks: Int? = nil, isComputing: Bool? = nil,
            actor: String? = nil
        ) {
            (self.pinnedThreads, self.width, self.waitingTasks) = (pinnedThreads, width, waitingTasks)
            (self.isComputing, self.actor) = (isComputing, actor)
        }

        /// `1 of 2 threads of tasks for one priority`, for the pool's label: the others have as many threads.
        package func subject(_ label: String) -> String {
            let threads = "thread\((width ?? pinnedThreads) == 1 ? "" : "s") of \(label)"
            guard let width else { return "\(pinnedThreads) \(threads)" }
            return "\(pinnedThreads) of \(width) \(threads) for one priority"
        }

        /// `was blocked for`, as the words before the duration.
        func verb(isOver: Bool) -> String {
            guard pinnedThreads > 1 else {
                return "\(isOver ? "was" : "has been") \(isComputing == true ? "kept computing" : "blocked") for"
            }
            // The others have a time of their own, and may do the other thing.
            let hold = isComputing == true ? "computing" : "blocked"
            return "\(isOver ? "were" : "have been") kept, one of them \(hold) for"
        }
    }

    /// What kept the thread of a pool and what waited for it: `; task 91 "dns" on the actor Store; 14 tasks waited`.
    package var poolInWords: String {
        guard let pool else { return "" }
        let name = context?.taskName.map { " \"\($0)\"" } ?? ""
        let task = context?.taskID.map { "task \($0)\(name)" }
        let actor = pool.actor.map { "\(task == nil ? "a job of" : " on") the actor \($0)" } ?? ""
        let waiting = pool.waitingTasks.map { count in
            count == 0 ? "no task was seen waiting" : count == 1 ? "1 task waited" : "\(count) tasks waited"
        }
        let parts = [(task ?? "") + actor, waiting ?? ""].filter { !$0.isEmpty }
        return parts.map { "; \($0)" }.joined()
    }
}
