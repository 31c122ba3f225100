/// The Swift tasks of a process at one time with their waits: in a report, and in an answer to ``ControlRequest/tasks``.
///
/// Stacks, function names and the activity of threads are stored in the report next to it.
package struct TaskList: Codable, Sendable, Equatable {
    package enum TaskState: String, TaskWord {
        case running
        /// It waits for its turn on an executor.
        case enqueued
        /// It waits for something else.
        case suspended

        package static let other = suspended
    }

    package enum Wait: String, TaskWord {
        /// The end of the task ``Task/target``.
        case task
        /// One of its own child tasks in a group, which have the group's number in ``Task/group``.
        case group
        /// A continuation, which some code has to resume.
        case continuation
        /// A time, in `Task.sleep` or a clock's `sleep`.
        case sleep
        /// The executor with the index ``Task/target``.
        case executor
        case pool
        /// A newer version's word.
        case other
    }

    package struct Task: Codable, Sendable, Equatable {
        package var id: UInt64
        /// The name that the app has given it; `nil` if it has none, or the app redacts reports.
        package var name: String?
        package var state: TaskState
        /// `nil` while it runs.
        package var wait: Wait?
        /// The awaited task's id, group's number or executor's index; `nil` if it is not known.
        package var target: UInt64?
        package var thread: Int32?
        package var parent: UInt64?
        package var group: UInt64?
        /// The index of its async functions in the report's stacks, the innermost first; `nil` if they are not known.
        package var stack: Int?
        package var isCanceled: Bool?
        /// The bytes of memory searched in vain for its checked continuation; `nil` if found, or not known.
        package var searchedInVain: UInt64?
        /// The number of equal tasks that it stands for, itself included; `nil` means 1.
        package var count: Int?
    }

    /// What runs some tasks, one at a time unless it is a task executor.
    package struct Executor: Codable, Sendable, Equatable {
        package enum ExecutorKind: String, TaskWord {
            case actor, mainActor
            /// One that tasks prefer to the pool, which may have several threads.
            case task
            /// An executor that the app has made.
            case custom

            package static let other = custom
        }
        package var kind: ExecutorKind
        package var name: String?
        /// Its address: the same executor has the same one in the next answer.
        package var address: StallReport.Address
        /// The thread that runs it; `nil` if none does, or it is not known.
        package var thread: Int32?

        package init(kind: ExecutorKind, name: String? = nil, address: StallReport.Address, thread: Int32? = nil) {
            (self.kind, self.name, self.address, self.thread) = (kind, name, address, thread)
        }
    }

    package var tasks: [Task]
    package var executors: [Executor] = []
    package var searchedBytes: UInt64 = 0
    /// The time of the reading, in milliseconds; no thread was held in it.
    package var readMilliseconds = 0.0
    /// Why there may be more tasks; `nil` if all memory was searched.
    package var incompleteReason: String?

    /// The most tasks that one entry can stand for.
    private static let maximumCount = 1_000_000

    /// The first value that readers cannot use, in a list of a report with `stacks` stacks; `nil` if there is none.
    package func fault(stacks: Int) -> String? {
        for task in tasks {
            if let count = task.count, !(1...Self.maximumCount).contains(count) {
                return "task \(task.id) stands for \(count) tasks"
            }
            if let stack = task.stack, !(0..<stacks).contains(stack) {
                return "task \(task.id) has the stack \(stack), but there are \(stacks) stacks"
            }
            if task.wait == .executor, let target = task.target, target >= UInt64(executors.count) {
                return "task \(task.id) waits for executor \(target), but there are \(executors.count)"
            }
        }
        return nil
    }
}

extension TaskList {
    package init(tasks: [Task]) { self.tasks = tasks }
}

extension TaskList.Task {
    package init(id: UInt64, state: TaskList.TaskState) {
        self.id = id
        self.state = state
    }
}

/// A word of a list; one that a newer version has added counts as ``other``.
package protocol TaskWord: Codable, Sendable, RawRepresentable<String> {
    static var other: Self { get }
}

extension TaskWord {
    package init(from decoder: any Decoder) throws {
        self = Self(rawValue: try String(from: decoder)) ?? .other
    }
}
