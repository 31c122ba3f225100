import StackCapture
import StallReports
import Synchronization

/// Asks for the tasks that wait for a loop of some kind, with the thread that runs it, and the begin of its stall.
///
/// The answer is `nil` if no task is read: this never waits.
typealias TaskRequest = @Sendable (LoopKind, CaptureTarget, UInt64) -> WaitingTasks?

/// The tasks that a stall keeps waiting, once another thread has read them.
final class WaitingTasks: Sendable {
    private let found = Mutex<(list: TaskList, stacks: [CapturedStack], at: UInt64)?>(nil)
    /// The begin of the stall, in monotonic nanoseconds.
    private let began: UInt64

    init(began: UInt64) { self.began = began }

    func set(_ list: TaskList, _ stacks: [CapturedStack], at time: UInt64) {
        found.withLock { $0 = (list, stacks, time) }
    }

    /// Returns the list, if it was read before a stall with this duration had ended; `nil` while it lasts.
    ///
    /// `stack` stores a stack and returns its index.
    func list(after duration: UInt64?, stack: (CapturedStack) -> Int) -> TaskList? {
        guard let found = found.withLock({ $0 }), duration.map({ found.at &- began <= $0 }) ?? true else { return nil }
        var list = found.list
        list.renumberStacks { stack(found.stacks[$0]) }
        return list
    }
}

extension TaskList {
    /// Gives the stacks new indices; `store` stores the stack with an old index, once, and returns its new one.
    mutating func renumberStacks(_ store: (Int) -> Int) {
        var indices: [Int: Int] = [:]
        for index in tasks.indices {
            guard let old = tasks[index].stack else { continue }
            let new = indices[old] ?? store(old)
            indices[old] = new
            tasks[index].stack = new
        }
    }

    /// Keeps the tasks that wait for a turn on an executor for which `isRight` is true; `nil` stands for the task pool.
    ///
    /// The monitor's own are left out, and equal ones become one.
    mutating func keepEnqueued(on isRight: (Executor?) -> Bool) {
        tasks = tasks.filter { task in
            if task.name == HeartbeatSource.taskName { return false }
            return switch task.wait {
            case .pool: isRight(nil)
            case .executor: executor(of: task).map(isRight) ?? false
            default: false
            }
        }
        for index in tasks.indices { (tasks[index].name, tasks[index].parent, tasks[index].group) = (nil, nil, nil) }
        merge()
    }
}
