import Glibc
import LinuxSupport
import StackCapture
import StallReports

/// Finds out what the tasks of overdue operations wait for, on the thread of the operations.
///
/// All edges of a chain are read again after its threads were captured: if one has changed, everything is read anew.
struct OperationInspector {
    /// The most readings until the monitor gives up: first those that follow the tasks, then those of all memory.
    private static let followingReadings = 2
    private static let maximumReadings = 5
    /// The most threads that are captured if a task waits for the pool.
    private static let maximumPoolThreads = 8
    /// The most threads of one operation, with the owners of the locks that they wait for.
    private static let maximumThreads = 16

    /// Why no reading has an operation's task.
    ///
    /// One that runs another task inside of it, as with `Task.immediate`, is not the current one of its thread.
    static let noReading = "its task changed during each reading, or runs another one inside of it"

    struct Finding {
        var operation: OverdueOperation
        var name: [UInt8]?
        var stack: Result<CapturedStack, CaptureFailure> = .failure(.notTried)
        var threads: [StallRecord.OtherThread] = []
        var images = ImageList()
        /// The task at the end of the chain, if it awaits a continuation.
        var awaiting: SwiftTask?

        func fill(_ record: inout StallRecord, of operation: OperationRegistry.Operation) {
            record.operation = self.operation
            (record.otherThreads, record.otherImages) = (threads, images)
            guard let task = self.operation.task else { return }
            var sample = StallRecord.Sample(age: record.duration, isValid: true, stack: stack, images: images)
            if case .success(var stack) = stack {
                stack.context = CapturedContext(
                    task: .init(id: task, name: name), payload: operation.context?.storage.payload.bytes ?? [])
                sample.stack = .success(stack)
            }
            record.samples = [sample]
        }
    }

    private let capturer: ThreadCapture
    private let threads: ProcessThreads
    private let reader: Result<TaskReader, TaskReader.Unreadable>

    /// Prepares, in some milliseconds; `nil` if the system has no memory for it.
    init?() {
        guard let engine = try? CUnwindEngine() else { return nil }
        capturer = ThreadCapture(engine: engine, maySignal: false)
        threads = ProcessThreads(capturer: capturer)
        reader = Result { () throws(TaskReader.Unreadable) in try TaskReader.ofThisProcess() }
    }

    var methods: [StallReport.CaptureMethod] { capturer.methods }
    var unwinder: Unwinder { capturer.unwinder }

    /// Returns what the tasks at these addresses wait for, in their order; they live until this returns.
    func inspect(_ addresses: [UInt64]) -> [Finding] {
        let reader: TaskReader
        do throws(TaskReader.Unreadable) { reader = try self.reader.get() } catch {
            return addresses.map { _ in Finding(operation: OverdueOperation(reason: error.reason)) }
        }
        var findings: [Int: Finding] = [:]
        for number in 0..<Self.maximumReadings where findings.count < addresses.count {
            let isSearching = number >= Self.followingReadings
            let reading = reader.read(from: addresses, isSearching: isSearching)
            var stacks: [CapturedStack] = []
            let list = TaskInspection.list(of: reading, reader.memory) { stack in
                stacks.append(stack)
                return stacks.count - 1
            }
            for (index, address) in addresses.enumerated() where findings[index] == nil {
                guard let task = reading.tasks.first(where: { $0.address == address }) else { continue }
                let operation = OverdueOperation(task.id, in: list, stacks, capturer.images())
                // What it waits for may be in memory that no task refers to.
                if !isSearching, TaskChain(from: task.id, in: list).end == .unknown { continue }
                findings[index] = finding(of: operation, named: task.name, reading, reader)
            }
        }
        return addresses.indices.map { index in
            findings[index] ?? Finding(operation: OverdueOperation(reason: Self.noReading))
        }
    }

    /// Captures the threads at the end of a chain; `nil` if the chain has changed meanwhile.
    private func finding(
        of operation: OverdueOperation, named name: [UInt8]?, _ reading: TaskReading, _ reader: TaskReader
    ) -> Finding? {
        guard let task = operation.task else { return nil }
        let chain = TaskChain(from: task, in: operation.list)
        var found = Finding(operation: operation, name: name)
        switch chain.end {
        case .thread(let thread): found.threads = capture([thread])
        case .pool:
            // The main thread belongs to no pool.
            let running = reading.threads.filter { $0.task != 0 && $0.id != getpid() }.map(\.id)
            found.threads = capture(Array(running.prefix(Self.maximumPoolThreads)))
            // One that has gone on shows what another task does, or that it is idle now.
            let left = reader.left(since: reading).tasks
            found.threads.removeAll { left.contains($0.thread.id) }
        case .continuation: found.awaiting = reading.tasks.first { $0.id == chain.awaiting }
        default: break
        }
        found.images = capturer.images()
        guard isUnchanged(chain, reading, reader) else { return nil }
        if case .thread(let thread) = chain.end, chain.tasks.last?.wait == .executor {
            // Of an actor's short jobs, the one that was read first may be over.
            let (before, now) = (reading.threads, reader.threads())
            if before.first(where: { $0.id == thread })?.task != now.first(where: { $0.id == thread })?.task {
                found.operation.list.tasks.removeAll { $0.thread == thread }
            }
        }
        let first = chain.tasks.first
        if let stack = first?.stack {
            found.stack = .success(operation.stacks[stack])
        } else if let thread = first?.thread, let captured = found.threads.first(where: { $0.thread.id == thread }) {
            found.stack = captured.stack
        }
        return found
    }

    private func isUnchanged(_ chain: TaskChain, _ reading: TaskReading, _ reader: TaskReader) -> Bool {
        let read = Dictionary(reading.tasks.map { ($0.id, $0) }) { first, _ in first }
        let isSame = chain.tasks.allSatisfy { task in
            guard let before = read[task.id], let now = reader.memory.stableTask(at: before.address) else {
                return false
            }
            return (now.id, now.dependency, now.isRunning) == (before.id, before.dependency, before.isRunning)
        }
        guard isSame, case .thread(let thread) = chain.end,
            let before = reading.threads.first(where: { $0.id == thread })
        else { return isSame }
        return before.isSameEnd(of: chain, now: reader.threads().first { $0.id == thread })
    }

    private func capture(_ first: [Int32]) -> [StallRecord.OtherThread] {
        let resolver = LockOwnerResolver(threads: threads, memory: GuardedMemory())
        var captured: [StallRecord.OtherThread] = []
        var next = first
        while captured.count < Self.maximumThreads, !next.isEmpty {
            let id = next.removeFirst()
            guard !captured.contains(where: { $0.thread.id == id }) else { continue }
            let stack = threads.capture(id)
            let wait = resolver.wait(of: id, stack: try? stack.get())
            captured.append(
                StallRecord.OtherThread(
                    thread: .init(id), stack: stack, wait: wait, activity: threads.activity(of: id)))
            if let owner = wait?.lock?.owner { next.append(owner) }
        }
        return captured
    }
}

extension TaskThread {
    /// Returns whether a chain that ended at the thread still does.
    ///
    /// If the last task waits for an actor, the thread must still run that, which may have many short jobs.
    func isSameEnd(of chain: TaskChain, now: TaskThread?) -> Bool {
        chain.tasks.last?.wait == .executor ? executor == now?.executor : self == now
    }
}
