import Glibc
import LinuxSupport
import Synchronization

/// Checks the layout of tasks with tasks in known states: each way to wait, a child of each kind, and a running one.
///
/// A task's layout is private to the Swift runtime. If a reading is not exactly the known state, no task is read.
package struct TaskCalibration: Sendable, Equatable {
    /// The first word of every task; 0 if there is a problem.
    package private(set) var metadata: UInt64 = 0
    /// Where a task that has not begun resumes; 0 if that is not known.
    package private(set) var adapter: UInt64 = 0
    /// The first word of the object that keeps a checked continuation; 0 if its layout is not known.
    package private(set) var continuation: UInt64 = 0
    /// Where a thread keeps the address of the executor that it runs, from its thread pointer; `nil` if not known.
    package private(set) var activeExecutor: Int64?
    /// Why tasks cannot be read: a sentence without its period; `nil` if they can.
    package private(set) var problem: String?

    package static let ofThisProcess = TaskCalibration()

    /// The address by which tasks name the executor of the main actor; 0 if it is not known.
    package static var mainExecutor: UInt64 {
        let executor = MainActor.sharedUnownedExecutor
        // The type has one field, the executor's identity and its witness table (stdlib/public/Concurrency/Executor.swift).
        guard MemoryLayout<UnownedSerialExecutor>.size == 2 * MemoryLayout<UInt>.size else { return 0 }
        return UInt64(unsafeBitCast(executor, to: (UInt, UInt).self).0)
    }

    /// Calibrates, on two short-lived threads: a pool that is stuck does not matter.
    package init() {
        if let mismatch = Self.exportedMismatch() {
            problem = mismatch
            return
        }
        guard let first = WorkerThread.value(of: { KnownTasks().run() }),
            let second = WorkerThread.value(of: { KnownTasks().run() })
        else {
            problem = "no thread could be started for the calibration"
            return
        }
        guard first.failedLine == nil, second.failedLine == nil, first.metadata == second.metadata else {
            let check = (first.failedLine ?? second.failedLine).map { " (check \($0))" } ?? ""
            problem = "the Swift runtime's tasks do not have the expected layout\(check)"
            return
        }
        metadata = first.metadata
        adapter = first.adapter == second.adapter ? first.adapter : 0
        continuation = first.continuation == second.continuation ? first.continuation : 0
        activeExecutor = ContextCalibration.common(first.executors, second.executors)
    }

    /// What the runtime tells the debugger of itself; an executable with a static runtime may not export it.
    private static func exported(_ name: String) -> UInt64? {
        dlsym(nil, "_swift_concurrency_debug_\(name)").map { UInt64($0.loadUnaligned(as: UInt32.self)) }
    }

    /// Why a runtime that exports these values has another layout; `nil` if it may have the known one.
    static func exportedMismatch(_ exported: (String) -> UInt64? = exported) -> String? {
        let expected = [
            ("internal_layout_version", SwiftTaskMemory.layoutVersion), ("asyncTaskSize", SwiftTaskMemory.taskBytes),
        ]
        for (name, value) in expected {
            if let found = exported(name), found != value {
                return "this Swift runtime's \(name) is \(found), and only \(value) is known"
            }
        }
        return nil
    }
}

/// Tasks that wait for each other in every way, run on the calling thread.
private final class KnownTasks: Sendable {
    struct Findings: Sendable {
        var metadata: UInt64
        /// The line of the first check that has failed; `nil` if all are as expected.
        var failedLine: UInt?
        var executors: [Int64] = []
        var adapter: UInt64
        var continuation: UInt64
    }

    /// An actor that one task runs on and another waits for.
    private actor HeldActor {
        @inline(never) func run(_ body: @Sendable () -> Void) { body() }
    }

    private struct Recording {
        var tasks: [String: UInt64] = [:]
        var continuation: UnsafeContinuation<Void, Never>?
        var checked: CheckedContinuation<Void, Never>?
        var executors: [Int64] = []
        var failedLine: UInt?
    }

    private let recording = Mutex(Recording())
    private let actor = HeldActor()
    private let executor = KnownTask.Executor()

    private func store(_ name: String) {
        let address = SwiftTask.currentAddress
        recording.withLock { $0.tasks[name] = address }
    }

    private func expect(_ isTrue: Bool, line: UInt = #line) {
        if !isTrue { recording.withLock { $0.failedLine = $0.failedLine ?? line } }
    }

    private func identity(_ object: AnyObject) -> UInt64 { UInt64(UInt(bitPattern: ObjectIdentifier(object))) }

    private func address(_ name: String) -> UInt64 { recording.withLock { $0.tasks[name] ?? 0 } }

    func run() -> Findings {
        let leaf = Task(name: "leaf", executorPreference: executor) { [self] in
            store("leaf")
            await withUnsafeContinuation { continuation in recording.withLock { $0.continuation = continuation } }
        }
        let fresh = Task(executorPreference: executor) { [self] in store("fresh") }
        let adapters = [fresh, leaf].map(resumption)
        Task(executorPreference: executor) { [self] in
            store("checked")
            await withCheckedContinuation { continuation in recording.withLock { $0.checked = continuation } }
        }
        Task(executorPreference: executor) { [self] in
            store("waiter")
            await leaf.value
        }
        Task(executorPreference: executor) { [self] in
            store("group")
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    self.store("group child")
                    await leaf.value
                }
                await group.waitForAll()
            }
        }
        Task(executorPreference: executor) { [self] in
            store("let")
            async let child: Void = waitInChild(leaf)
            await child
        }
        executor.run()
        Task(name: "holder", executorPreference: executor) { [self] in
            store("holder")
            await actor.run { self.checkFromActor() }
        }
        executor.run()
        let metadata = check()
        let continuation = resumeChecked()
        recording.withLock { $0.continuation }?.resume()
        executor.run()
        let isKnown = address("fresh") == handle(fresh) && adapters[0] == adapters[1]
        return recording.withLock {
            Findings(
                metadata: metadata, failedLine: $0.failedLine, executors: $0.executors,
                adapter: isKnown ? adapters[0] : 0, continuation: continuation)
        }
    }

    /// Resumes the checked continuation; returns the first word of its object, 0 if the object is not as it should be.
    ///
    /// stdlib/public/Concurrency/CheckedContinuation.swift: the task is behind the header until it is resumed.
    private func resumeChecked() -> UInt64 {
        guard let checked = recording.withLock({ $0.checked }) else { return 0 }
        defer { checked.resume() }
        guard MemoryLayout<CheckedContinuation<Void, Never>>.size == MemoryLayout<UInt>.size else { return 0 }
        let memory = memory()
        let object = UInt64(unsafeBitCast(checked, to: UInt.self))
        let (task, owner) = (memory.stableTask(at: address("checked")), memory.ownerOfContinuation(at: object))
        guard task?.dependency == .continuation, owner == task?.address else { return 0 }
        return GuardedMemory().word(at: object) ?? 0
    }

    /// The address of a task; 0 if it is not known.
    private func handle(_ task: Task<Void, Never>) -> UInt64 {
        guard MemoryLayout<Task<Void, Never>>.size == MemoryLayout<UInt>.size else { return 0 }
        return UInt64(unsafeBitCast(task, to: UInt.self))
    }

    /// Where a task resumes; 0 if it is not known.
    private func resumption(_ task: Task<Void, Never>) -> UInt64 {
        SwiftTaskMemory(GuardedMemory(), metadata: 0).resumeFunction(ofTask: handle(task)) ?? 0
    }

    private func waitInChild(_ leaf: Task<Void, Never>) async {
        store("let child")
        await leaf.value
    }

    /// Runs on the actor, so that another task has to wait for it.
    private func checkFromActor() {
        let held = identity(actor)
        let executors = CUnwindEngine.placesInThreadStorage(of: held, isPointedTo: true)
        recording.withLock { $0.executors = executors }
        Task(executorPreference: executor) { [self] in
            store("wants actor")
            // A call that does nothing would need no turn on the actor.
            await actor.run { self.store("had actor") }
        }
        executor.run()
        let memory = memory()
        let (holder, waiting) = (memory.task(at: address("holder")), memory.task(at: address("wants actor")))
        expect(holder?.isRunning == true && holder?.dependency == nil && holder?.name == Array("holder".utf8))
        expect(holder?.preference == identity(executor))
        expect(waiting?.isRunning == false && waiting?.dependency == .executor(held))
        let (known, other) = (memory.swiftClass(of: held), memory.swiftClass(of: identity(self)))
        expect(known?.name == "HeldActor" && known?.isActor == true)
        expect(other?.name == "KnownTasks" && other?.isActor == false)
    }

    private func memory() -> SwiftTaskMemory {
        let memory = GuardedMemory()
        return SwiftTaskMemory(memory, metadata: memory.word(at: address("leaf")) ?? 0)
    }

    /// Reads the waiting tasks; returns the first word of all of them.
    private func check() -> UInt64 {
        let memory = memory()
        func read(_ name: String) -> SwiftTask? { memory.stableTask(at: address(name)) }
        let leaf = address("leaf")
        expect(leaf != 0 && read("leaf")?.dependency == .continuation && read("leaf")?.name == Array("leaf".utf8))
        expect(read("leaf")?.parent == nil && read("leaf")?.callers.isEmpty == false)
        expect(read("waiter")?.dependency == .task(leaf) && read("waiter")?.name == nil)
        expect(read("let")?.dependency == .task(address("let child")))
        let (group, groupChild, letChild) = (read("group"), read("group child"), read("let child"))
        expect(letChild?.dependency == .task(leaf) && letChild?.parent == address("let") && letChild?.group == nil)
        expect(groupChild?.dependency == .task(leaf) && groupChild?.parent == address("group"))
        let all = [read("leaf"), read("waiter"), read("let"), group, groupChild, letChild]
        expect(Set(all.map { $0?.id }).count == all.count && read("waiter")?.awaitedID == read("leaf")?.id)
        expect(groupChild?.group.flatMap(memory.children(ofGroup:)) == [address("group child")])
        expect(groupChild?.group != nil && groupChild?.group.map { group?.dependency == .group($0) } == true)
        return memory.metadata
    }
}
