internal import CLinux
import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

extension LoopSource where Self == HeartbeatSource {
    /// Returns a source for a serial executor or a task executor; `nil` for an executor that is neither.
    ///
    /// A heartbeat is a task with the executor as its preference (SE-0417), through ``SerialRelay`` for a serial one.
    /// `tasks` returns what reads the tasks of threads; `nil` while, or if, they cannot be read.
    static func executor(_ executor: any Executor, tasks: @escaping @Sendable () -> TaskReader?) -> HeartbeatSource? {
        let isSerial = executor is any SerialExecutor
        let relay = (executor as? any SerialExecutor).map(SerialRelay.init)
        guard let preference = relay ?? (executor as? any TaskExecutor) else { return nil }
        let address = UInt64(UInt(bitPattern: ObjectIdentifier(executor)))
        let sender = HeartbeatSender(to: address, isSerial: isSerial, tasks: tasks)
        return HeartbeatSource(
            kind: isSerial ? .serialExecutor : .taskExecutor, executor: isSerial ? 0 : address,
            owner: { sender.findThread() }, onlyIf: { sender.begin() }, unless: { sender.isInline },
            whenRemoved: { sender.end() }
        ) { item in
            sender.send {
                Task.detached(name: HeartbeatSource.taskName, executorPreference: preference) {
                    sender.markRun()
                    item()
                }
            }
        }
    }
}

/// Passes the jobs of a task on to a serial executor, which no task can prefer.
///
/// A heartbeat is two jobs: the serial executor is not the task's preference, so the runtime passes the first one on.
private final class SerialRelay: TaskExecutor {
    private let executor: any SerialExecutor

    init(_ executor: any SerialExecutor) { self.executor = executor }

    func enqueue(_ job: consuming ExecutorJob) { executor.enqueue(job) }
}

/// A thread that submits heartbeats to a program's executor or event loop: `enqueue` and `execute` may wait for a lock
/// that the stalled thread has.
final class SubmittingThread: Sendable {
    private let jobs = Mailbox<@Sendable () -> Void>()
    private let worker = Worker(name: "stallwatch-exec")
    private let isStarted = Atomic<Bool>(false)
    /// The thread's id; 0 until it runs.
    private let thread = Atomic<Int32>(0)
    private let whenEnded: @Sendable () -> Void

    /// Creates a thread that begins with the first job, or before it; then `whenEnded` runs on it after the last one.
    init(whenEnded: @escaping @Sendable () -> Void = {}) { self.whenEnded = whenEnded }

    var isCurrent: Bool { thread.load(ordering: .relaxed) == clinux_gettid() }

    /// Begins the thread, unless it has begun; returns `false` if the system refuses it.
    func begin() -> Bool {
        if !isStarted.load(ordering: .relaxed) {
            // The executor may make threads of the app on it.
            CUnwindEngine.makingThreads {
                isStarted.store((try? worker.start { [self] in run() }) != nil, ordering: .relaxed)
            }
        }
        return isStarted.load(ordering: .relaxed)
    }

    /// Runs `job` on the thread, and never waits for that; returns `false` if the system refuses the thread.
    @discardableResult
    func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        guard begin() else { return false }
        jobs.put(job, replacing: { _ in true })
        return true
    }

    /// Ends the thread; one that an executor holds ends later, or never.
    func end() {
        jobs.close()
        worker.finish(until: 0)
    }

    private func run() {
        thread.store(clinux_gettid(), ordering: .relaxed)
        while let job = jobs.next(), !jobs.isClosed { job() }
        whenEnded()
    }
}

private final class HeartbeatSender: Sendable {
    /// The address of the executor's object.
    private let executor: UInt64
    private let isSerial: Bool
    private let tasks: @Sendable () -> TaskReader?
    private let thread = SubmittingThread()
    /// When the heartbeat that waits was sent, in monotonic nanoseconds; 0 if none waits.
    private let sent = Atomic<UInt64>(0)
    /// The thread that was last known to run the executor; 0 before the first heartbeat has run.
    private let last = Atomic<Int32>(0)
    private let hasMoved = Atomic<Bool>(false)
    private let ranInline = Atomic<Bool>(false)
    /// How long a heartbeat waits before all threads are searched, in nanoseconds: one that was just sent is not late.
    private static let searchAge: UInt64 = 1_000_000

    init(to executor: UInt64, isSerial: Bool, tasks: @escaping @Sendable () -> TaskReader?) {
        (self.executor, self.isSerial, self.tasks) = (executor, isSerial, tasks)
    }

    /// Whether the executor runs jobs in `enqueue`, on its caller's thread: then it has no thread that can stall.
    var isInline: Bool { ranInline.load(ordering: .relaxed) }

    func send(_ job: @escaping @Sendable () -> Void) {
        // Tasks can be read by the time that a heartbeat is late.
        _ = tasks()
        sent.store(monotonicNow(), ordering: .relaxed)
        thread.submit(job)
    }

    /// Begins the thread; returns `false` if the system refuses it.
    func begin() -> Bool { thread.begin() }

    /// Ends the thread: an executor may keep a heartbeat, and with it this object, for ever.
    func end() { thread.end() }

    /// Notes that a heartbeat runs on the calling thread.
    func markRun() {
        sent.store(0, ordering: .relaxed)
        if thread.isCurrent { ranInline.store(true, ordering: .relaxed) }
        remember(clinux_gettid())
    }

    private func remember(_ thread: Int32) {
        let before = last.exchange(thread, ordering: .relaxed)
        if before != 0, before != thread { hasMoved.store(true, ordering: .relaxed) }
    }

    /// Returns the thread that runs a job of the executor while a heartbeat waits.
    ///
    /// It is unknown if no thread is seen to run one, or if this runtime's tasks cannot be read: the thread that ran the
    /// last heartbeat may do other work now. If that one has ended, it is returned, because the executor may have ended,
    /// too: then nothing is reported. But a serial executor that has changed its thread goes on without it.
    func findThread() -> CaptureTarget {
        let sent = sent.load(ordering: .relaxed)
        let last = last.load(ordering: .relaxed)
        guard sent != 0, last != 0 else { return .unknown }
        let now = monotonicNow()
        let isLate = now &- sent >= Self.searchAge
        if let tasks = tasks(), TaskCalibration.ofThisProcess.activeExecutor != nil {
            func runs(_ id: Int32) -> Bool {
                tasks.thread(id).map { ExecutorThreads.executors(of: $0, tasks).contains(executor) } ?? false
            }
            if runs(last) { return .thread(last) }
            let found = isLate ? ExecutorThreads.shared.found(at: now) { ExecutorThreads.search(tasks) } : [:]
            // It may have left since the search.
            if let thread = found[executor]?.first(where: runs) {
                remember(thread)
                return .thread(thread)
            }
        }
        guard isLate, !isSerial || !hasMoved.load(ordering: .relaxed) else { return .unknown }
        let isThere = access("/proc/self/task/\(last)", F_OK) == 0
        return isThere || !showsOwnThreads ? .unknown : .thread(last)
    }
}

/// The threads that run jobs of executors, searched for all watched executors at once: each may be late at each poll.
final class ExecutorThreads: Sendable {
    static let shared = ExecutorThreads()
    /// The time after a search in which there is no other one, as a multiple of its CPU time: 2 % of a CPU.
    static let restFactor: UInt64 = 50

    private struct Last {
        /// By the executor's address.
        var threads: [UInt64: [Int32]] = [:]
        /// In monotonic nanoseconds.
        var restsUntil: UInt64 = 0
    }
    private let last = ProcessMutex(Last())
    private let timeOnCPU: @Sendable () -> UInt64

    /// `timeOnCPU` returns how long the calling thread has been on a CPU, in nanoseconds.
    init(timeOnCPU: @escaping @Sendable () -> UInt64 = { threadTimeNow() }) { self.timeOnCPU = timeOnCPU }

    /// Returns the threads by the addresses of their executors; searches, unless the last search was just now.
    func found(at now: UInt64, _ search: () -> [UInt64: [Int32]]) -> [UInt64: [Int32]] {
        last.withLock { last in
            guard now >= last.restsUntil else { return last.threads }
            let before = timeOnCPU()
            last.threads = search()
            last.restsUntil = now &+ (timeOnCPU() &- before) &* Self.restFactor
            return last.threads
        }
    }

    static func search(_ tasks: TaskReader) -> [UInt64: [Int32]] {
        tasks.threads().reduce(into: [:]) { found, thread in
            for executor in executors(of: thread, tasks) { found[executor, default: []].append(thread.id) }
        }
    }

    /// Returns the executors whose job a thread may run: its active one, and that which its task prefers.
    static func executors(of thread: TaskThread, _ tasks: TaskReader) -> [UInt64] {
        guard thread.task != 0, let preference = tasks.memory.stableTask(at: thread.task)?.preference,
            // An actor with an executor of its own, as the main one, does not use the preferred one.
            thread.executor == 0 || tasks.memory.swiftClass(of: thread.executor)?.isActor == true
        else { return [thread.executor] }
        return [thread.executor, preference]
    }
}

enum MainActorExecutor {
    /// The executors of Swift's runtime for Linux, which run the main actor on the main dispatch queue: of the module
    /// `_Concurrency`, which is called `Swift` at run time.
    private static let standard: Set<String> = ["Swift.DispatchMainExecutor", "Swift.DispatchExecutor"]

    static func isStandard(_ type: Any.Type) -> Bool { standard.contains(String(reflecting: type)) }

    /// The executor that a program has put in place of the standard one; `nil` if it has not, or that is not known.
    static let custom: (any SerialExecutor)? = {
        let executor = MainActor.sharedUnownedExecutor
        guard MemoryLayout.size(ofValue: executor) == MemoryLayout<(UInt, UInt)>.size else { return nil }
        // An object and its witness table, in whose low bits the runtime keeps flags (Executor.h, SerialExecutorRef).
        let words = unsafeBitCast(executor, to: (UInt, UInt).self)
        guard words.0 != 0, words.1 & ~7 != 0, words.1 & 7 == 0 else { return nil }
        // As in the standard library's `withSerialExecutor`, which Swift 6.2 does not have.
        let serial = unsafeBitCast(executor, to: (any SerialExecutor).self)
        return isStandard(type(of: serial)) ? nil : serial
    }()
}
