internal import CLinux
import Glibc
import Synchronization

/// A thread of the monitor: a plain pthread, because Dispatch or Swift concurrency may be stalled.
///
/// The first of ``join()``, ``detach()`` and ``finish(until:)`` counts; without any, the thread ends on its own.
///
/// `@unchecked Sendable`: `init` writes the handle once, before any other thread has the object.
package final class WorkerThread: @unchecked Sendable {
    private var handle = pthread_t()
    /// Whether the thread has been started, and neither joined nor detached.
    private let isKept = Atomic<Bool>(false)
    private let isAbandoned = Atomic<Bool>(false)
    private let ended = Semaphore()
    /// What is known of all of them in a process.
    private struct Own {
        /// When this was first asked for, in monotonic nanoseconds.
        let since = monotonicNow()
        var running: Set<Int32> = []
        /// Those of them that are no threads of the program.
        var started: Set<Int32> = []
        /// The time on a CPU, in nanoseconds, and the waits of those that have ended.
        var (nanoseconds, waits) = (UInt64(0), UInt64(0))
        /// The latest of them, with the times of their ends in monotonic nanoseconds.
        var ended: [(id: Int32, time: UInt64)] = []
    }
    private static let mostEnded = 64
    private static let own = ProcessMutex(Own())

    /// The kernel ids of the monitors' own threads; a name would not tell them from unnamed threads of the program.
    package static var ids: Set<Int32> { own.withLock { $0.running } }

    /// Those that have ended since a moment in monotonic nanoseconds, of the latest 64: the kernel may show them for a while.
    package static func ended(since time: UInt64) -> Set<Int32> {
        own.withLock { Set($0.ended.lazy.filter { $0.time >= time }.map(\.id)) }
    }

    /// Whether an instruction is of the function that is outermost on each such thread's stack, also before ``ids`` has it and
    /// after that.
    package static func begins(at address: UInt64) -> Bool { clinux_begins_thread(address) }

    /// The nanoseconds for which all of them have been on a CPU since a moment in monotonic nanoseconds, before the first one
    /// began, and the number of their waits.
    package static var use: (nanoseconds: UInt64, waits: UInt64, since: UInt64) {
        // One that ends meanwhile is not counted this time.
        let (running, ended) = own.withLock { ($0.running, ($0.nanoseconds, $0.waits, $0.since)) }
        return running.map(use(of:)).reduce(ended) { ($0.0 &+ $1.0, $0.1 &+ $1.1, $0.2) }
    }

    /// The same of one thread; zeros for what the system does not show.
    private static func use(of thread: Int32) -> (UInt64, UInt64) {
        var status = ByteCursor(readSmallFile("/proc/self/task/\(thread)/status") ?? "")
        let waits = status.skip(pastLinePrefix: "voluntary_ctxt_switches:") ? status.number() : nil
        return (cpuTime(of: thread) ?? 0, waits ?? 0)
    }

    /// Counts the calling thread as a monitor's own while `body` runs.
    package static func asOwnThread<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        let id = clinux_gettid()
        let isNew = own.withLock { $0.running.insert(id).inserted }
        defer { if isNew { own.withLock { _ = $0.running.remove(id) } } }
        return try body()
    }

    /// The size of a thread's stack, in bytes, and of one that names functions: the runtime decodes names by recursion, which
    /// took 2.1 MB for a name of 16 KiB, all of it nested.
    package static let stackBytes = (usual: 1 << 20, naming: 4 << 20)

    /// Starts a thread that runs `body` and ends; a name has at most 15 bytes.
    ///
    /// Policy, stack, timers and floating-point state are the monitor's own. The thread blocks the signals that apps use,
    /// from its beginning, so that it runs none of their handlers. The signals of crashes, traps and profilers stay as the
    /// creating thread has them, so that a crash handler can stop this thread.
    package init(
        name: String, namesFunctions: Bool = false, body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        _ = Self.sharesHeap
        let run: @Sendable () -> Void = { [ended] in
            clinux_name_this_thread(name)
            WorkerThread.asOwnThread {
                Self.own.withLock { _ = $0.started.insert(callingThread) }
                body()
                // At once: nothing may take it for a thread of the program, or count it twice.
                let (id, used) = (callingThread, Self.use(of: callingThread))
                Self.own.withLock { own in
                    own.running.remove(id)
                    own.started.remove(id)
                    own.ended = own.ended.suffix(Self.mostEnded - 1) + [(id, monotonicNow())]
                    (own.nanoseconds, own.waits) = (own.nanoseconds &+ used.0, own.waits &+ used.1)
                }
            }
            ended.post()
        }
        let start = Unmanaged.passRetained(OneShotTransfer(run))
        // Where the first ones may run: the program may have widened, or bound, a thread since then.
        let like = Self.own.withLock { $0.started.first } ?? 0
        let status = clinux_start_thread(
            &handle, namesFunctions ? Self.stackBytes.naming : Self.stackBytes.usual, like,
            { argument in
                // Never nil: it is the pointer passed below, which carries one reference.
                guard let argument else { return nil }
                Unmanaged<OneShotTransfer<@Sendable () -> Void>>.fromOpaque(argument).takeRetainedValue().take()?()
                return nil
            }, start.toOpaque()
        )
        guard status == 0 else {
            start.release()
            throw SystemError(
                "the thread \(name) cannot be started: \(Self.remedy(policy: sched_getscheduler(0)))", errno: status)
        }
        isKept.store(true, ordering: .releasing)
    }

    deinit { detach() }

    /// SCHED_DEADLINE of sched.h, which the module Glibc does not have.
    package static let deadlinePolicy: Int32 = 6

    /// What to do if a thread with a scheduling policy cannot start one.
    static func remedy(policy: Int32) -> String {
        // sched(7), "Deadline scheduling".
        policy == deadlinePolicy
            ? "a thread with the policy SCHED_DEADLINE can start none; start the monitor on another thread"
            : "raise the limit on threads (ulimit -u, the cgroup's pids.max)"
    }

    /// Returns the result of `body`, which runs on a thread of its own; `nil` if the system refuses the thread, or at a
    /// deadline in monotonic nanoseconds, after which the thread ends on its own.
    package static func value<Value: Sendable>(
        until deadline: UInt64 = .max, of body: @escaping @Sendable () -> Value
    ) -> Value? {
        (try? LateCall(name: "stallwatch-try") { _ in body() })?.value(until: deadline)
    }

    /// The addresses that a monitor's threads may take, in bytes: ten with a heap each.
    private static let addressesOfThreads = 1 << 30

    /// Whether the limit on the address space (RLIMIT_AS) requires a heap shared with the app's threads: five threads took
    /// 360 MB of addresses otherwise, and the app's own allocations failed.
    private static let sharesHeap = clinux_is_short_of_addresses(addressesOfThreads) && clinux_share_heap()

    package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Waits for the end of the thread; call it from another thread.
    package func join() {
        if isKept.exchange(false, ordering: .acquiringAndReleasing) { pthread_join(handle, nil) }
    }

    package func detach() {
        if isKept.exchange(false, ordering: .acquiringAndReleasing) { pthread_detach(handle) }
    }

    /// If called on this thread, makes ``finish(until:)`` not wait for it on any other.
    package func abandonIfCurrent() {
        if isCurrent { isAbandoned.store(true, ordering: .releasing) }
    }

    /// Whether ``finish(until:)`` waits for the thread.
    fileprivate var isAwaited: Bool { !isCurrent && !isAbandoned.load(ordering: .acquiring) }

    /// Waits for the thread's end, unless called on itself, until a deadline; returns whether it has ended meanwhile.
    @discardableResult
    package func finish(until deadline: UInt64) -> Bool {
        guard isKept.load(ordering: .acquiring) else { return false }
        guard isAwaited, ended.wait(until: deadline) else {
            detach()
            return false
        }
        join()
        return true
    }
}

/// Runs work on threads of its own, one at a time, each of which ends with its work.
package final class Worker: Sendable {
    private struct Current {
        var thread: WorkerThread?
        var isRunning = false
    }
    private let name: String
    private let namesFunctions: Bool
    private let current = Mutex(Current())

    package init(name: String, namesFunctions: Bool = false) {
        (self.name, self.namesFunctions) = (name, namesFunctions)
    }

    /// Runs `body` on a new thread, unless the last one still runs; returns whether it does that.
    @discardableResult
    package func start(_ body: @escaping @Sendable () -> Void) throws(SystemError) -> Bool {
        try current.withLock { current throws(SystemError) in
            guard !current.isRunning else { return false }
            // The last one has nothing left to do, so this does not wait.
            current.thread?.join()
            current.thread = nil
            current.thread = try WorkerThread(name: name, namesFunctions: namesFunctions) { [self] in
                body()
                self.current.withLock { $0.isRunning = false }
            }
            current.isRunning = true
            return true
        }
    }

    package func abandonIfCurrent() { current.withLock { $0.thread }?.abandonIfCurrent() }

    /// Waits for the thread's end, unless called on it, until a deadline in monotonic nanoseconds: then it ends alone,
    /// and the result is `false`.
    @discardableResult
    package func finish(until deadline: UInt64) -> Bool {
        guard let thread = current.withLock({ $0.thread.take() }) else { return true }
        let isAwaited = thread.isAwaited
        return thread.finish(until: deadline) || !isAwaited
    }
}

/// A call on a thread of its own that may never return: then it is left.
package final class LateCall<Value: Sendable>: Sendable {
    private let worker: Worker
    private let thread = Atomic<Int32>(0)
    private let state = Mutex((value: Value?.none, isLeft: false))
    private let returned = Semaphore()
    /// The longest wait for the end of a thread whose call has returned, in nanoseconds.
    private static var patience: UInt64 { 1_000_000_000 }

    /// Begins the call, with itself; a thread's name has at most 15 bytes.
    package init(
        name: String, namesFunctions: Bool = false, _ body: @escaping @Sendable (LateCall) -> Value
    ) throws(SystemError) {
        worker = Worker(name: name, namesFunctions: namesFunctions)
        try worker.start { [self] in
            thread.store(clinux_gettid(), ordering: .relaxed)
            let value = body(self)
            state.withLock { $0.value = value }
            returned.post()
        }
    }

    /// The result; `nil` until the call returns.
    package var result: Value? { state.withLock { $0.value } }
    package var cpuTime: UInt64? { LinuxSupport.cpuTime(of: thread.load(ordering: .relaxed)) }

    /// Runs `body` before the call is left, or never.
    package func inTime(_ body: () -> Void) { state.withLock { if !$0.isLeft { body() } } }

    /// Waits for the result, until a deadline in monotonic nanoseconds; returns whether it has come.
    package func wait(until deadline: UInt64) -> Bool { returned.wait(until: deadline) }

    /// Returns the result, for which it waits until a deadline; without one the call is left.
    package func value(until deadline: UInt64 = 0) -> Value? {
        if result == nil { _ = wait(until: deadline) }
        let value = state.withLock { state in
            state.isLeft = true
            return state.value
        }
        if value != nil { worker.finish(until: monotonicNow() &+ Self.patience) }
        return value
    }
}

/// A value that takes long to find out: found once a process, on a ``JobThread``; until then there is none.
package final class Prepared<Value: Sendable>: Sendable {
    private struct State {
        var hasBegun = false
        var value: Value?
    }
    /// A child of fork(2) has no thread that finds the value.
    private let state: ProcessMutex<State>
    private let thread: JobThread
    private let find: @Sendable () -> Value

    package convenience init(on thread: JobThread = .memory, _ find: @escaping @Sendable () -> Value) {
        self.init(on: thread, in: { clinux_process_number() }, find)
    }

    init(on thread: JobThread, in process: @escaping @Sendable () -> UInt32, _ find: @escaping @Sendable () -> Value) {
        (self.thread, self.find) = (thread, find)
        state = ProcessMutex(in: process) { State() }
    }

    /// Begins to find the value, unless that has begun; never waits.
    package func begin() {
        guard state.withLock({ !exchange(&$0.hasBegun, with: true) }) else { return }
        let begins = thread.add { [self] in
            let value = find()
            state.withLock { $0.value = value }
        }
        if !begins { state.withLock { $0.hasBegun = false } }
    }

    package var value: Value? { state.withLock { $0.value } }
}

/// A counting semaphore whose timed wait uses the monotonic clock.
///
/// `@unchecked Sendable`: several threads may use a sem_t at once, its address never changes, and it is destroyed with
/// the last reference to this object.
package final class Semaphore: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>

    package init() {
        semaphore = .allocate(capacity: 1)
        // Fails only for a value over SEM_VALUE_MAX or for sharing between processes (sem_init(3)); neither applies.
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Releases one wait; never blocks.
    package func post() {
        sem_post(semaphore)
    }

    /// Waits for a post, also after a signal; `false` at the deadline, in monotonic nanoseconds (`.max`: no end).
    @discardableResult
    package func wait(until deadline: UInt64 = .max) -> Bool {
        clinux_semaphore_wait_until(semaphore, deadline) == 0
    }
}

/// `@unchecked Sendable`: `init` stores the value before the object is shared, and the mutex lets one caller take it.
package final class OneShotTransfer<Value>: @unchecked Sendable {
    private let value: Mutex<Value?>

    package init(_ value: sending Value) {
        self.value = Mutex(value)
    }

    /// Returns the value to the first caller, and `nil` to later ones.
    package func take() -> sending Value? {
        value.withLock { value in
            defer { value = nil }
            return value
        }
    }
}
