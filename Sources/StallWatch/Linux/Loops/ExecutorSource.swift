internal import CLinux
import Glibc
import LinuxSupport
import StallReports
import Synchronization

extension LoopSource where Self == HeartbeatSource {
    /// Returns a source for a serial executor or a task executor; `nil` for an executor that is neither.
    ///
    /// A heartbeat is a task with the executor as its preference (SE-0417), through ``SerialRelay`` for a serial one.
    static func executor(_ executor: any Executor) -> HeartbeatSource? {
        let isSerial = executor is any SerialExecutor
        let relay = (executor as? any SerialExecutor).map(SerialRelay.init)
        guard let preference = relay ?? (executor as? any TaskExecutor) else { return nil }
        let sender = HeartbeatSender()
        let address = isSerial ? 0 : UInt64(UInt(bitPattern: ObjectIdentifier(executor)))
        return HeartbeatSource(
            kind: isSerial ? .serialExecutor : .taskExecutor, executor: address,
            owner: { sender.owner(isSerial: isSerial) },
            unless: { sender.isInline }, whenRemoved: { sender.end() }
        ) { item in
            sender.send {
                Task.detached(name: HeartbeatSource.taskName, executorPreference: preference) {
                    sender.rememberThread()
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

/// Submits heartbeats to an executor on a thread of its own: `enqueue` may wait for a lock that the stalled thread has.
private final class HeartbeatSender: Sendable {
    private let jobs = Mailbox<@Sendable () -> Void>()
    private let worker = Worker(name: "stallwatch-exec")
    /// The sender's thread; 0 until it runs.
    private let sender = Atomic<Int32>(0)
    /// The thread that ran the last heartbeat; 0 before the first.
    private let last = Atomic<Int32>(0)
    private let hasMoved = Atomic<Bool>(false)
    private let ranInline = Atomic<Bool>(false)

    /// Whether the executor runs jobs in `enqueue`, on its caller's thread: then it has no thread that can stall.
    var isInline: Bool { ranInline.load(ordering: .relaxed) }

    func send(_ job: @escaping @Sendable () -> Void) {
        // Without a thread the next heartbeat is never sent, because this one stays pending: the loop is not known to run.
        guard (try? worker.start { [self] in run() }) != nil else { return }
        jobs.put(job, replacing: { _ in true })
    }

    func end() {
        jobs.close()
        // An executor may keep a heartbeat, and with it this object, for ever.
        worker.finish(until: 0)
    }

    private func run() {
        sender.store(clinux_gettid(), ordering: .relaxed)
        while let job = jobs.next(), !jobs.isClosed { job() }
    }

    func rememberThread() {
        let thread = clinux_gettid()
        if thread == sender.load(ordering: .relaxed) { ranInline.store(true, ordering: .relaxed) }
        let before = last.exchange(thread, ordering: .relaxed)
        if before != 0, before != thread { hasMoved.store(true, ordering: .relaxed) }
    }

    /// Returns the thread whose stack explains a late heartbeat; `nil` stands for the one that ran the last.
    ///
    /// A serial executor that has changed its thread may run on any other one now. Of a task executor that is late, all
    /// threads are busy, also that one; if it has ended, so may have the executor, and nothing is reported.
    func owner(isSerial: Bool) -> CaptureTarget? {
        isSerial && hasMoved.load(ordering: .relaxed) ? .unknown : nil
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
