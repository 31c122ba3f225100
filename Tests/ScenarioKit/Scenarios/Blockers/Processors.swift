import CStalls
import Dispatch
import Foundation
import Glibc
import LinuxSupport
import Synchronization

extension DispatchQueue {
    /// Makes a serial queue whose thread, `queue-worker`, is busy for `duration` from now on.
    static func busy(for duration: Duration) async -> DispatchQueue {
        let queue = DispatchQueue(label: "demo.busy")
        await withCheckedContinuation { continuation in
            queue.async {
                NamedThread.nameThisThread("queue-worker")
                continuation.resume()
                sleepTooLong(for: duration)
            }
        }
        return queue
    }
}

extension NamedThread {
    static func start(_ name: String, after duration: Duration, _ work: @escaping @Sendable () -> Void) {
        start(name) { ready in
            ready()
            sleepTooLong(for: duration)
            work()
        }
    }
}

/// Threads that compute: on all CPUs, or on the first one, so that a thread bound to it gets little of it.
final class Competitors: Sendable {
    private let isOver = Atomic<Bool>(false)

    /// Starts the threads, and returns once all run.
    init(count: Int, sharesTheCPU: Bool = true, isNice: Bool = false) {
        for index in 0..<count {
            NamedThread.start("rival-\(index)") { [self] ready in
                if sharesTheCPU { stalls_pin_thread() }
                // Of this thread: Linux gives each its own value.
                if isNice { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }
                ready()
                while !isOver.load(ordering: .relaxed) {}
            }
        }
    }

    /// Runs `body` on their CPU, and then ends the threads.
    func run(_ body: () -> Void) {
        stalls_pin_thread()
        body()
        stalls_unpin_thread()
        stop()
    }

    func stop() { isOver.store(true, ordering: .relaxed) }
}

/// A worker of a queue with the QoS background that owns a lock, on a CPU that other threads keep busy.
final class BackgroundWorker: Sendable {
    let queue = DispatchQueue(label: "demo.background", qos: .background)
    let lock = PthreadLock()
    private let mayGoOn = DispatchSemaphore(value: 0)
    private let competitors = Competitors(count: 4)

    /// Starts the worker, and returns once it has the lock; fails where neither libdispatch nor the program can make it nice.
    static func start(_ holding: HolderActivity, for duration: Duration) async throws -> BackgroundWorker {
        let worker = BackgroundWorker()
        let which = __priority_which_t(PRIO_PROCESS.rawValue)
        // The whole process may be nice.
        let usual = getpriority(which, UInt32(getpid()))
        let isNice = await withCheckedContinuation { continuation in
            worker.queue.async {
                NamedThread.nameThisThread("background")
                worker.lock.acquire()
                let given = getpriority(which, 0)
                // Debian's libdispatch 6.2 makes no worker nice. Only root can make it as it was.
                let isHelped = given <= usual && geteuid() == 0 && setpriority(which, 0, 19) == 0
                defer { if isHelped { setpriority(which, 0, given) } }
                continuation.resume(returning: getpriority(which, 0) > usual)
                worker.mayGoOn.wait()
                stalls_pin_thread()
                holding.run(for: duration)
                worker.lock.release()
                stalls_unpin_thread()
            }
        }
        if isNice { return worker }
        worker.compete {}
        throw NotAvailable(reason: "this libdispatch does not make background workers nice")
    }

    /// Lets the worker go on while `body` runs, and then ends the other threads.
    func compete(_ body: () -> Void) {
        mayGoOn.signal()
        body()
        competitors.stop()
    }
}

/// A CPU cgroup (version 1) with a quota.
struct QuotaGroup: Sendable {
    private static let root = "/sys/fs/cgroup/cpu"
    private let path: String
    /// The group of the thread that makes this one.
    private let before: String

    init(share: Double) throws(NotAvailable) {
        path = Self.root + "/stallwatch-scenarios-\(getpid())"
        let groups = CPUQuota.candidates(readSmallFile("/proc/thread-self/cgroup") ?? "").map {
            String($0.dropLast("/cpu.stat".count))
        }
        // In a container the root may be the thread's group, under another name.
        before = groups.first { access($0 + "/tasks", W_OK) == 0 } ?? Self.root
        let refusal = NotAvailable(reason: "a CPU cgroup of version 1 cannot be created")
        guard mkdir(path, 0o755) == 0 else { throw refusal }
        // The largest weight: the group uses its quota at once and is then throttled.
        guard Self.write("262144", to: path + "/cpu.shares"), Self.write("100000", to: path + "/cpu.cfs_period_us"),
            Self.write("\(Int(share * 100_000))", to: path + "/cpu.cfs_quota_us")
        else {
            rmdir(path)
            throw refusal
        }
    }

    func enter() { Self.moveThisThread(to: path) }

    /// Moves the calling thread back and removes the group.
    func leave() {
        Self.moveThisThread(to: before)
        rmdir(path)
    }

    private static func moveThisThread(to group: String) {
        // 0 is the thread that writes (the kernel's cgroup-v1/cgroups.rst).
        _ = write("0", to: group + "/tasks")
    }

    private static func write(_ text: String, to path: String) -> Bool {
        let file = open(path, O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        return Glibc.write(file, text, text.utf8.count) == text.utf8.count
    }
}
