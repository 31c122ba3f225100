import Glibc
import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// Makes the answer to a request for the tasks, and stops no thread: one that is on a CPU has no stack in the answer.
struct TaskInspection {
    /// The time for all names, in nanoseconds (6 s): what is not found by then has none.
    private static let timeForNames: UInt64 = 6_000_000_000
    private static let maximumThreads = 256
    private static let maximumStacks = 5_000

    let configuration: StallMonitor.Configuration
    /// The app's, which applies to every answer; `nil` if it has none.
    let redaction: Redaction?

    func answer() throws(StallWatchError) -> ControlAnswer {
        let reader: TaskReader
        do { reader = try TaskReader.ofThisProcess() } catch {
            return ControlAnswer(pid: getpid(), error: error.reason)
        }
        let began = monotonicNow()
        let reading = reader.read()
        let took = monotonicNow() - began
        let capturer = try throwing(.systemFailure) { () throws(SystemError) in
            ThreadCapture(engine: try CUnwindEngine(), maySignal: false)
        }
        var tables = ReportTables(inApp: configuration.symbols.inApp)
        let images = capturer.images()
        var made = Self.list(of: reading, reader.memory) { tables.stack($0, in: images) }
        made.readMilliseconds = milliseconds(took)
        // These threads explain the waits: they run tasks, or executors that tasks wait for.
        let ids = Set(made.executors.compactMap(\.thread) + made.tasks.compactMap(\.thread))
        let first = Array(ids.sorted().prefix(Self.maximumThreads))
        let threads = describe(first, capturer) { tables.stack($0, in: $1) }
        // A thread that has gone on shows what another task does.
        let left = reader.left(since: reading)
        made.forgetThreads(ofTasks: left.tasks, ofExecutors: left.executors)
        var report = named(report(threads, tables))
        made.markSleeps(report)
        if let redaction {
            guard let redacted = redaction.redacted(report, with: made) else {
                return ControlAnswer(
                    pid: getpid(), error: "the tasks could not be redacted in time: \(Redaction.lateFault)")
            }
            (report, made) = (redacted.report, redacted.tasks ?? made)
        }
        return ControlAnswer(pid: getpid(), report: report, tasks: made)
    }

    /// Returns one task for all in the same state; `nil` if there are none, or they cannot be read.
    static func counts() -> TaskList? {
        guard let reader = try? TaskReader.ofThisProcess() else { return nil }
        var counted = list(of: reader.read(), reader.memory) { _ in 0 }
        let states = Dictionary(grouping: counted.tasks, by: \.state)
        counted.executors = []
        counted.tasks = states.map { state, tasks in
            var task = TaskList.Task(id: tasks[0].id, state: state)
            task.count = tasks.count
            return task
        }
        return states.isEmpty ? nil : counted
    }

    /// The main thread; `nil` if workers run the main actor in its place.
    ///
    /// Under an async `main` and after `dispatchMain()` it waits for signals for ever. It may, too, if its `call` is
    /// not shown in /proc.
    static func threadOfMainActor(_ call: String?) -> Int32? {
        guard let call else { return nil }
        let name = Int(call.prefix { $0 != " " }).flatMap(SystemCallNames.current.name)
        return name == "rt_sigsuspend" ? nil : getpid()
    }

    private static var mainThread: Int32? {
        threadOfMainActor(readSmallFile("/proc/self/task/\(getpid())/syscall"))
    }

    /// Returns the list of a reading; `stack` stores a stack of async functions and returns its index.
    static func list(
        of reading: TaskReading, _ memory: SwiftTaskMemory, mainExecutor: UInt64 = TaskCalibration.mainExecutor,
        mainThread: Int32? = Self.mainThread, stack: (CapturedStack) -> Int
    ) -> TaskList {
        var list = TaskList(tasks: [])
        list.searchedBytes = reading.searchedBytes
        list.incompleteReason = reading.incompleteReason
        let threads = Dictionary(reading.threads.map { ($0.task, $0.id) }) { first, _ in first }
        var stacks: [[UInt64]: Int] = [:]
        var groups: [UInt64: UInt64] = [:]
        var executors: [UInt64: UInt64] = [:]
        func number(ofGroup address: UInt64) -> UInt64 {
            if let known = groups[address] { return known }
            groups[address] = UInt64(groups.count)
            return UInt64(groups.count - 1)
        }
        func index(ofExecutor address: UInt64, isOfTasks: Bool = false) -> UInt64 {
            if let known = executors[address] { return known }
            let isMain = address == mainExecutor && !isOfTasks
            let swiftClass = memory.swiftClass(of: address)
            // Of a task executor no thread is known.
            let running = isOfTasks ? nil : reading.threads.first { $0.executor == address }?.id
            let kind: TaskList.Executor.ExecutorKind =
                isMain ? .mainActor : isOfTasks ? .task : swiftClass?.isActor == true ? .actor : .custom
            list.executors.append(
                TaskList.Executor(
                    kind: kind, name: isMain ? nil : swiftClass?.name, address: .init(address),
                    // The main actor's jobs run on the main thread, whatever it does, if that runs them at all.
                    thread: running ?? (isMain ? mainThread : nil)))
            executors[address] = UInt64(list.executors.count - 1)
            return UInt64(list.executors.count - 1)
        }
        for read in reading.tasks {
            var task = TaskList.Task(id: read.id, state: read.isRunning ? .running : .suspended)
            task.name = read.name.map { String(decoding: $0, as: UTF8.self) }
            if read.isRunning { task.thread = threads[read.address] }
            task.parent = read.parentID
            task.group = read.group.map(number)
            if read.isCanceled { task.isCanceled = true }
            switch read.dependency {
            case nil: break
            case .task: (task.wait, task.target) = (.task, read.awaitedID)
            case .group(let address): (task.wait, task.target) = (.group, number(ofGroup: address))
            case .continuation: task.wait = .continuation
            case .executor(0): (task.state, task.wait) = (.enqueued, .pool)
            case .executor(let address):
                (task.state, task.wait, task.target) = (.enqueued, .executor, index(ofExecutor: address))
            case .taskExecutor(let address):
                (task.state, task.wait) = (.enqueued, .executor)
                task.target = index(ofExecutor: address, isOfTasks: true)
            }
            if let known = stacks[read.callers] {
                task.stack = known
            } else if !read.callers.isEmpty, stacks.count < maximumStacks {
                task.stack = stack(CapturedStack(async: read.callers))
                stacks[read.callers] = task.stack
            }
            list.tasks.append(task)
        }
        list.tasks.sort { $0.id < $1.id }
        return list
    }

    private func describe(
        _ first: [Int32], _ capturer: ThreadCapture, stack: (CapturedStack, ImageList) -> Int
    ) -> [StallReport.OtherThread] {
        let threads = ProcessThreads(capturer: capturer)
        let resolver = LockOwnerResolver(threads: threads, memory: GuardedMemory())
        var described: [StallReport.OtherThread] = []
        var next = first
        var seen = Set(first)
        while let id = next.popLast(), described.count < Self.maximumThreads {
            guard let state = threads.state(of: id) else { continue }
            let captured = try? threads.capture(id, mayStop: false).get()
            let wait = resolver.wait(of: id, stack: captured)
            var lock = wait?.lock.map { LockChain(lock: $0) }
            if let owner = wait?.lock?.owner {
                lock?.owners = [.init(thread: .init(owner), isRunning: false)]
                if seen.insert(owner).inserted { next.append(owner) }
            }
            var thread = StallReport.OtherThread(thread: .init(.init(id), captured))
            thread.stack = captured.map { stack($0, capturer.images()) }
            thread.threadState = state.activity == .running ? .running : .blocked
            thread.systemCall = wait?.call
            thread.lock = lock.map { StallReport.Lock($0) { _ in 0 } }
            described.append(thread)
        }
        return described.sorted { $0.thread.id < $1.thread.id }
    }

    private func report(_ threads: [StallReport.OtherThread], _ tables: ReportTables) -> StallReport {
        let now = Timestamp(wallClockNanoseconds: wallClockNow())
        var report = StallReport(
            id: ReportIdentifier.make(at: now), kind: .stall, state: .ended, startedAt: now, durationMilliseconds: 0,
            thresholdMilliseconds: 0, process: .current(), metadata: configuration.privacy.metadata,
            loop: .init(label: "tasks", kind: .cooperativePool, turn: 0, nesting: 0), samples: [],
            stacks: tables.stacks, frames: tables.frames, images: tables.images,
            monitor: .init(
                watchdogLateMilliseconds: 0, captureMethods: [.read], suppressed: SuppressionCounts()))
        if !threads.isEmpty { report.otherThreads = threads }
        return report
    }

    private func named(_ raw: StallReport) -> StallReport {
        let symbolication = ReportSymbolication.inProcess(
            configuration.symbols.lookup, inApp: configuration.symbols.inApp)
        var report = symbolication.symbolicate(raw, until: monotonicNow() &+ Self.timeForNames)
        (report.culprit, report.missingCulpritReason, report.callout) = (nil, nil, nil)
        report.shortenPaths(configuration.privacy.pathStyle)
        return report
    }
}

extension CapturedStack {
    /// The async functions of a suspended task, by the addresses at which they resume.
    fileprivate init(async callers: [UInt64]) {
        let frames = callers.indices.map { index in
            CapturedFrame(
                address: callers[index], isExact: true,
                kind: index == callers.count - 1 ? .taskStart : .asyncCaller)
        }
        self.init(
            method: .read, threadState: .blocked, frames: frames, isComplete: true, heldNanoseconds: 0,
            captureNanoseconds: 0)
    }
}

extension TaskList {
    /// Forgets that threads ran these tasks and executors, which they have left since.
    ///
    /// The main actor's jobs run on the `mainThread`, if there is one, whatever that does.
    mutating func forgetThreads(
        ofTasks tasks: Set<Int32>, ofExecutors executors: Set<Int32>, mainThread: Int32 = getpid()
    ) {
        for index in self.tasks.indices where self.tasks[index].thread.map(tasks.contains) == true {
            self.tasks[index].thread = nil
        }
        for index in self.executors.indices where self.executors[index].thread.map(executors.contains) == true {
            let executor = self.executors[index]
            if executor.kind != .mainActor || executor.thread != mainThread { self.executors[index].thread = nil }
        }
    }

    mutating func markSleeps(_ report: StallReport) {
        let isSleep = report.stacks.map { stack in
            stack.lazy.map { report.frames[$0] }.prefix { !$0.isInApp }.contains { frame in
                guard let symbol = frame.symbol else { return false }
                // The mangled names of an extension of Task in the module Swift (s), and of methods of its clocks.
                return symbol.hasPrefix("$sScTs") && ["E5sleep", "E6_sleep"].contains { symbol.contains($0) }
                    || ["$ss15ContinuousClockV5sleep", "$ss15SuspendingClockV5sleep"].contains { symbol.hasPrefix($0) }
            }
        }
        for index in tasks.indices where tasks[index].wait == .continuation {
            if let stack = tasks[index].stack, isSleep[stack] { tasks[index].wait = .sleep }
        }
    }
}
