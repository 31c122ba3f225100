/// What one task waits for, and what that waits for, to the end: a pure value of a list whose tasks are sorted by id.
package struct TaskChain: Sendable, Equatable {
    /// Why a chain goes no further.
    package enum End: Sendable, Equatable {
        /// This thread runs the last task, or the executor that the last task waits for.
        case thread(Int32)
        case continuation
        case sleep
        /// The last task waits for any thread of the task pool.
        case pool
        /// The last task waits for an executor, and it is not known that a thread runs it.
        case executor
        /// The last task waits for an earlier one of the chain, which waits for it.
        case circle
        case unknown
    }

    static let maximumTasks = 64

    /// The task itself, the one that it waits for, and so on.
    package private(set) var tasks: [TaskList.Task] = []
    package private(set) var end = End.unknown

    /// The id of the task at the end that waits for a continuation; `nil` without one.
    package var awaiting: UInt64? { end == .continuation ? tasks.last?.id : nil }

    /// Follows a task; of several children in a group, one that was asked to end, else the oldest one.
    package init(from first: UInt64, in list: TaskList) {
        let known = Dictionary(list.tasks.map { ($0.id, $0) }) { first, _ in first }
        let children = list.children
        /// The places in the chain from which another task may end the wait.
        var choices: [Int] = []
        var next: UInt64? = first
        while let id = next, let task = known[id], tasks.count < Self.maximumTasks {
            if let repeated = tasks.firstIndex(where: { $0.id == id }) {
                if choices.allSatisfy({ $0 < repeated }) { end = .circle }
                return
            }
            tasks.append(task)
            next = nil
            switch task.wait {
            case nil: end = task.thread.map(End.thread) ?? .unknown
            case .continuation: end = .continuation
            case .sleep: end = .sleep
            case .other: end = .unknown
            case .pool: end = .pool
            case .task: next = task.target
            case .group:
                // Also with one known child: others may not be in the list.
                choices.append(tasks.count - 1)
                next = list.awaited(among: task.target.flatMap { children[$0] } ?? [])?.id
            case .executor: end = list.executor(of: task)?.thread.map(End.thread) ?? .executor
            }
        }
    }
}

extension TaskList {
    /// The indices of each group's child tasks.
    var children: [UInt64: [Int]] {
        // Right: these tasks have a group.
        Dictionary(grouping: tasks.indices.filter { tasks[$0].group != nil }) { tasks[$0].group ?? 0 }
    }

    /// Returns the child task that a group waits for, as far as that is known: one that was asked to end, else the oldest.
    func awaited(among children: [Int]) -> Task? {
        (children.first { tasks[$0].isCanceled == true } ?? children.first).map { tasks[$0] }
    }

    /// Sets ``Task/searchedInVain`` of tasks whose continuation was not found in the searched memory.
    package mutating func markSearched(_ search: (ids: Set<UInt64>, bytes: UInt64)) {
        for index in tasks.indices where search.ids.contains(tasks[index].id) {
            tasks[index].searchedInVain = search.bytes
        }
    }

    /// The executor that a task waits for; `nil` if it waits for something else, or the executor is not known.
    package func executor(of task: Task) -> Executor? {
        guard task.wait == .executor, let index = task.target.flatMap(Int.init(exactly:)),
            executors.indices.contains(index)
        else { return nil }
        return executors[index]
    }
}
