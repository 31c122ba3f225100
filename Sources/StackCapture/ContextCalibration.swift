internal import CUnwind
import LinuxSupport
import Synchronization

/// Finds where the runtime keeps a thread's task and its values, and checks it with tasks that are known.
///
/// The places are in the private memory of the Swift runtime and of glibc. So nothing is assumed: a part whose reading
/// does not give exactly the known value is not read at all.
package struct ContextCalibration: Sendable, Equatable {
    package private(set) var layout: ContextLayout
    /// Why tasks are not read; `nil` if they are.
    package private(set) var taskProblem: String?
    /// Why contexts are not read by any method but the signal; `nil` if they are.
    package private(set) var threadProblem: String?

    package var problem: String? { taskProblem ?? threadProblem }

    private struct Findings {
        var robustList: Int64?
        var tasks: [Int64] = []
        var plainLocals: [Int64] = []
        var scope: Int64 = 0
    }

    /// Calibrates, in under a millisecond (measured), on two short-lived threads: a stuck pool does not matter.
    package init(_ publisher: ContextPublisher) {
        let record = CUnwindEngine.threadContextRecord()
        guard let first = WorkerThread.value(of: { Self.find(publisher) }),
            let second = WorkerThread.value(of: { Self.find(publisher) })
        else {
            layout = ContextLayout()
            taskProblem = "no thread could be started for the calibration"
            threadProblem = taskProblem
            return
        }
        var layout = ContextLayout()
        layout.key = publisher.key
        layout.payloadOffset = publisher.payloadOffset
        if first.robustList == second.robustList { layout.robustList = first.robustList }
        layout.task = Self.common(first.tasks, second.tasks)
        layout.plainLocals = Self.common(first.plainLocals, second.plainLocals)
        if first.scope == second.scope { layout.scope = first.scope }
        layout.record = record
        self.layout = WorkerThread.value { [layout] in Self.checked(layout, publisher) } ?? ContextLayout()
        if self.layout.task == nil { taskProblem = "the Swift runtime's tasks do not have the expected layout" }
        if self.layout.robustList == nil { threadProblem = "the kernel does not tell the threads' thread pointers" }
    }

    /// The place that is the only common one; `nil` if there is none, or several.
    static func common(_ first: [Int64], _ second: [Int64]) -> Int64? {
        let common = Set(first).intersection(second)
        return common.count == 1 ? common.first : nil
    }

    /// Looks for the parts on the calling thread.
    private static func find(_ publisher: ContextPublisher) -> Findings {
        var findings = Findings()
        var offset: Int64 = 0
        if cunwind_robust_list_offset(&offset) { findings.robustList = offset }
        findings.scope = cunwind_thread_offset(publisher.scope())
        publisher.bind {
            findings.plainLocals = CUnwindEngine.placesInThreadStorage(of: publisher.value, key: publisher.key)
        }
        let during = Mutex((task: UInt64(0), places: [Int64]()))
        _ = KnownTask.run(name: nil) { task in
            let places = CUnwindEngine.placesInThreadStorage(of: task)
            during.withLock { $0 = (task, places) }
        }
        let (task, places) = during.withLock { $0 }
        // The runtime clears its word when the task leaves the thread. A copy elsewhere may stay.
        let after = CUnwindEngine.placesInThreadStorage(of: task)
        findings.tasks = places.filter { !after.contains($0) }
        return findings
    }

    /// Returns the layout without the parts whose reading does not give the known values on the calling thread.
    private static func checked(_ layout: ContextLayout, _ publisher: ContextPublisher) -> ContextLayout {
        var checked = layout
        var namesAreRight = true
        // The last one is longer than what is read.
        for name in ["known", nil, String(repeating: "n", count: CUnwindEngine.maximumTaskName + 1)] {
            let read = Mutex<CapturedContext?>(nil)
            var asked = layout
            asked.scope = nil
            asked.hasTaskNames = true
            let id = KnownTask.run(name: name) { [asked] _ in
                publisher.bind { read.withLock { $0 = CUnwindEngine.contextOfThisThread(asked) } }
            }
            let context = read.withLock { $0 }
            guard let id, context?.task?.id == id, context?.payload.starts(with: publisher.payload) == true else {
                checked.task = nil
                break
            }
            let expected = name.map { Array($0.utf8.prefix(CUnwindEngine.maximumTaskName)) }
            if context?.task?.name != expected { namesAreRight = false }
        }
        if !isInherited(layout, publisher) { checked.task = nil }
        checked.hasTaskNames = checked.task != nil && namesAreRight
        if !isPublished(publisher.payload, by: publisher.bind, checked, without: \.scope) { checked.plainLocals = nil }
        if !isPublished(publisher.payload, by: publisher.enter, checked, without: \.plainLocals) { checked.scope = nil }
        return checked
    }

    /// Returns whether a child of a task is read with the context of its parent.
    private static func isInherited(_ layout: ContextLayout, _ publisher: ContextPublisher) -> Bool {
        let read = Mutex<CapturedContext?>(nil)
        var asked = layout
        asked.scope = nil
        KnownTask.runWithChild(in: publisher.bindAsync) { [asked] in
            read.withLock { $0 = CUnwindEngine.contextOfThisThread(asked) }
        }
        return read.withLock { $0?.payload.starts(with: publisher.payload) == true }
    }

    /// Returns whether the known context is read on the calling thread, outside of tasks and without one part.
    private static func isPublished(
        _ payload: [UInt8], by publish: (() -> Void) -> Void, _ layout: ContextLayout,
        without part: WritableKeyPath<ContextLayout, Int64?>
    ) -> Bool {
        var asked = layout
        asked[keyPath: part] = nil
        var during: CapturedContext?
        publish { during = CUnwindEngine.contextOfThisThread(asked) }
        let after = CUnwindEngine.contextOfThisThread(asked)
        return during?.payload.starts(with: payload) == true && (after?.payload ?? []).isEmpty
    }
}

/// Runs tasks on the calling thread, with known names, and tells their ids.
enum KnownTask {
    /// Holds the jobs of a task and its children until the calling thread runs them.
    final class Executor: TaskExecutor {
        private let jobs = Mutex<[UnownedJob]>([])

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0.append(job) }
        }

        /// Runs all jobs, and those that they enqueue; returns the id of the first one's task.
        @discardableResult
        func run() -> UInt64? {
            var id: UInt64?
            while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                // "UnownedJob(id: 12)".
                let digits = job.description.drop { !$0.isNumber }.prefix { $0.isNumber }
                if id == nil { id = UInt64(digits) }
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
            return id
        }
    }

    /// Runs `body` with a new task's address (0: unknown) on the calling thread; returns the id, `nil` if not told.
    static func run(name: String?, _ body: @escaping @Sendable (_ task: UInt64) -> Void) -> UInt64? {
        let executor = Executor()
        Task(name: name, executorPreference: executor) { body(SwiftTask.currentAddress) }
        return executor.run()
    }

    /// Runs `body` in a child of a new task, within `bind` in the parent, on the calling thread.
    static func runWithChild(
        in bind: @escaping @Sendable (@Sendable () async -> Void) async -> Void, _ body: @escaping @Sendable () -> Void
    ) {
        let executor = Executor()
        Task(executorPreference: executor) {
            await bind {
                await withTaskGroup(of: Void.self) { $0.addTask { body() } }
            }
        }
        executor.run()
    }
}

/// Where the parts of a context are, in bytes from a thread's thread pointer; `nil` for parts that are not known.
package struct ContextLayout: Sendable, Equatable {
    package struct Record: Sendable, Equatable {
        /// The module id of its image, from 1, by which each thread has a block.
        var module: UInt64
        /// The distance from the beginning of the block.
        var offset: UInt64
    }

    /// The list of robust futexes, by which the kernel tells the thread pointer.
    package var robustList: Int64?
    /// The address of the current task.
    package var task: Int64?
    package var hasTaskNames = false
    /// The address of the task-local values that are bound outside of tasks.
    package var plainLocals: Int64?
    /// The address of the innermost synchronous scope.
    package var scope: Int64?
    package var record: Record?
    package var key: UInt64 = 0
    /// The distance from the value's object to the payload.
    package var payloadOffset: UInt64 = 0
}

/// What the calibration must know of the code that publishes contexts.
package struct ContextPublisher: Sendable {
    /// The key of the task-local value: the address of its declaration's object.
    package var key: UInt64
    /// The address of the object that is the value of ``bind``.
    package var value: UInt64
    package var payloadOffset: UInt64
    /// The payload that ``bind`` and ``enter`` publish.
    package var payload: [UInt8]
    /// Calls a function with the known context as the task-local value.
    package var bind: @Sendable (() -> Void) -> Void
    package var bindAsync: @Sendable (@Sendable () async -> Void) async -> Void
    /// Calls a function in a synchronous scope of the known context.
    package var enter: @Sendable (() -> Void) -> Void
    /// Returns the address of the calling thread's variable for the innermost scope.
    package var scope: @Sendable () -> UnsafeRawPointer

    package init(
        key: UInt64, value: UInt64, payloadOffset: UInt64, payload: [UInt8],
        bind: @escaping @Sendable (() -> Void) -> Void,
        bindAsync: @escaping @Sendable (@Sendable () async -> Void) async -> Void,
        enter: @escaping @Sendable (() -> Void) -> Void,
        scope: @escaping @Sendable () -> UnsafeRawPointer
    ) {
        self.key = key
        self.value = value
        self.payloadOffset = payloadOffset
        self.payload = payload
        self.bind = bind
        self.bindAsync = bindAsync
        self.enter = enter
        self.scope = scope
    }
}
