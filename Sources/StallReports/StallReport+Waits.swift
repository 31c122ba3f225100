extension StallReport {
    /// One link of what an overdue operation waited for: a task that waits, or a thread that runs.
    public struct Wait: Codable, Sendable, Equatable {
        /// What the task waited for; `running` for a thread at the end of the chain.
        package var kind: WaitKind
        /// The id of the Swift task, unique in the process; `nil` if the thread ran none.
        package var task: UInt64?
        package var name: String?
        /// The class of the actor or executor that the task waited for: `MainActor` for the main actor.
        package var executor: String?
        /// The thread that ran the task or the executor.
        package var thread: Int32?
        /// The index of the task's async functions, or of the thread's stack, in ``StallReport/stacks``.
        package var stack: Int?
        /// The indices of the stacks of up to 100 child tasks in the group that the task waited for.
        package var childStacks: [Int]?
        /// The app's function that waited or ran; `nil` until the report is symbolicated, or if there is none.
        package var function: String?
        /// The path of the function's source file, as the compiler recorded it.
        package var file: String?
        /// The line in ``file``, from 1: the one that waits.
        package var line: Int?

        package init(
            kind: WaitKind, task: UInt64? = nil, name: String? = nil, executor: String? = nil, thread: Int32? = nil,
            stack: Int? = nil
        ) {
            (self.kind, self.task, self.name, self.executor, self.thread) = (kind, task, name, executor, thread)
            self.stack = stack
        }

        /// The function with its line: `load() (Loader.swift:40)`; `nil` if it is not known.
        var place: String? { function.map { StallReport.place($0, file, line) } }

        /// `load() at Loader.swift:40 awaits a task`.
        package var sentence: String {
            let place = function.map { $0 + (file.map { " at \(sourcePlace($0, line))" } ?? "") }
            let subject = task.map { "task \($0)" + (name.map { " \"\($0)\"" } ?? "") }
            switch kind {
            case .running:
                let on = thread.map { " on thread \($0)" } ?? ""
                return "\(subject.map { "\($0) runs" } ?? "code runs")\(on)" + (place.map { " in \($0)" } ?? "")
            default: return "\(subject ?? "a task")\(place.map { " in \($0)" } ?? "") \(doing)"
            }
        }

        private var doing: String {
            switch kind {
            case .task: "awaits a task"
            case .group: "awaits a child task of a group"
            case .continuation: "awaits a continuation"
            case .sleep: "sleeps"
            case .executor: "awaits \(executor ?? "an executor")"
            case .pool: "waits for a thread"
            default: "waits (\(kind.rawValue))"
            }
        }
    }

    package typealias WaitKind = Word<Wait>
}

extension Collection<StallReport.Frame> {
    /// Whether a task's frames wait for an element of an `AsyncStream` or `AsyncThrowingStream`, inside of the app's function.
    var awaitStream: Bool {
        prefix { !$0.isInApp && $0.isDependency != true }
            .call(["AsyncStream.Iterator.next", "AsyncThrowingStream.Iterator.next"])
    }

    /// Whether a thread's frames wait for the other threads of `concurrentPerform`, inside of the app's function.
    var awaitIterations: Bool {
        let inner = prefix { !$0.isInApp && $0.isDependency != true }
        return inner.call(["_dispatch_thread_event_wait_slow"]) && inner.call(["dispatch_apply_f"])
    }
}

extension StallReport.WaitKind {
    /// The end of another task, which the next link is about.
    package static var task: Self { Self(rawValue: "task") }
    /// A child task in a group; the next link is about one that was asked to end, else about the oldest.
    package static var group: Self { Self(rawValue: "group") }
    /// A continuation, which some code has to resume.
    package static var continuation: Self { Self(rawValue: "continuation") }
    /// A time, in `Task.sleep` or a clock's `sleep`.
    package static var sleep: Self { Self(rawValue: "sleep") }
    /// Its turn on an actor or another executor; the next link is about the thread that runs it.
    package static var executor: Self { Self(rawValue: "executor") }
    /// Any thread of the task pool; the next links are about threads that run tasks.
    package static var pool: Self { Self(rawValue: "pool") }
    /// Nothing: a thread runs it.
    package static var running: Self { Self(rawValue: "running") }
}

extension StallReport.OtherThread {
    /// What the thread did, as a phrase that follows its name: `waits in poll`, `is on a CPU or ready to run`.
    package var activity: String {
        if let lock { return lock.waitInWords }
        if let systemCall { return "waits in \(systemCall)" }
        switch threadState {
        case .running?: return "is on a CPU or ready to run"
        case nil: return "was not captured" + (reason.map { ": \($0)" } ?? "")
        default: return "waits"
        }
    }
}
