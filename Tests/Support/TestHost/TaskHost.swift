import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

/// A program with a control socket whose 500 named tasks wait in known ways, until it is killed.
///
/// It prints each task with what it waits for, as `E`, the name, the state, the wait and the target, with tabs between.
final class TaskHost: Sendable {
    private let began = Atomic<Int>(0)
    private let continuations = Mutex<[UnsafeContinuation<Void, Never>]>([])
    private let edges = Mutex<[String]>([])
    private let cache = Cache()
    private let device = Device()

    static func run(directory: String, kind: String, count: Int) throws {
        var configuration = StallMonitor.Configuration(threshold: .seconds(60), reports: .none)
        configuration.control = .socket(directory: directory)
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        let host = TaskHost()
        switch kind {
        case "graph": host.makeGraph()
        case "churn":
            host.makeGraph()
            Deadlock.startThread("churn") { host.churn() }
        case "many": host.makeMany(count)
        case "large":
            host.makeMany(count)
            host.fillMemory()
        case "circle": host.makeCircle()
        case "none": break
        default: exit(64)
        }
        Deadlock.startThread("teller") {
            // A task counts just before it begins to wait.
            while host.began.load(ordering: .relaxed) < host.edges.withLock({ $0.count }) { usleep(10_000) }
            usleep(500_000)
            for edge in host.edges.withLock({ $0 }) { tell(edge) }
            tell("B")
        }
        CFRunLoopRun()
        withExtendedLifetime((monitor, host)) {}
    }

    private func note(_ name: String, _ state: String, _ wait: String, _ target: String = "") {
        edges.withLock { $0.append("E\t\(name)\t\(state)\t\(wait)\t\(target)") }
    }

    private func count() { began.add(1, ordering: .relaxed) }

    /// Waits for a continuation that is kept and never resumed.
    private func waitForEver() async {
        await withUnsafeContinuation { continuation in
            continuations.withLock { $0.append(continuation) }
            count()
        }
    }

    private func awaitTask(_ task: Task<Void, Never>) async {
        count()
        await task.value
    }

    private func sleepLong() async {
        count()
        try? await Task.sleep(for: .seconds(3_600))
    }

    private func awaitChildren(_ number: Int, _ leaf: Task<Void, Never>) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask(name: "child \(number).0") { await self.waitForEver() }
            group.addTask(name: "child \(number).1") { await self.sleepLong() }
            group.addTask(name: "child \(number).2") { await self.awaitTask(leaf) }
            count()
            await group.waitForAll()
        }
    }

    private func awaitLet() async {
        async let child: Void = waitForEver()
        await child
    }

    private func makeGraph() {
        var leaves: [Task<Void, Never>] = []
        for number in 0..<100 {
            let name = "leaf \(number)"
            note(name, "suspended", "continuation")
            leaves.append(
                number % 2 == 0
                    ? Task.detached(name: name) { await self.waitForEver() }
                    : Task(name: name) { await self.waitForEver() })
        }
        for number in 0..<60 {
            note("waiter \(number)", "suspended", "task", "leaf \(number)")
            let leaf = leaves[number]
            let waiter = Task.detached(name: "waiter \(number)") { await self.awaitTask(leaf) }
            note("second \(number)", "suspended", "task", "waiter \(number)")
            Task.detached(name: "second \(number)") { await self.awaitTask(waiter) }
        }
        for number in 0..<25 {
            note("group \(number)", "suspended", "group", "child \(number).0,child \(number).1,child \(number).2")
            note("child \(number).0", "suspended", "continuation")
            note("child \(number).1", "suspended", "sleep")
            note("child \(number).2", "suspended", "task", "leaf \(number)")
            let leaf = leaves[number]
            Task.detached(name: "group \(number)") { await self.awaitChildren(number, leaf) }
        }
        for number in 0..<30 {
            note("let \(number)", "suspended", "task", "child of let \(number)")
            Task.detached(name: "let \(number)") { await self.awaitLet() }
            note("sleeper \(number)", "suspended", "sleep")
            Task.detached(name: "sleeper \(number)") { await self.sleepLong() }
        }
        note("holder Cache", "running", "")
        Task.detached(name: "holder Cache") { await self.cache.hold { self.count() } }
        note("holder Device", "running", "")
        Task.detached(name: "holder Device") { await self.device.hold { self.count() } }
        note("holder main", "running", "")
        Task.detached(name: "holder main") { await holdMain { self.count() } }
        Deadlock.startThread("wanter") { self.makeEnqueued() }
    }

    private func makeEnqueued() {
        usleep(300_000)
        for number in 0..<39 {
            note("wants Cache \(number)", "enqueued", "executor", "holder Cache")
            Task.detached(name: "wants Cache \(number)") {
                self.count()
                await self.cache.ping()
            }
            note("wants Device \(number)", "enqueued", "executor", "holder Device")
            Task.detached(name: "wants Device \(number)") {
                self.count()
                await self.device.ping()
            }
            note("wants main \(number)", "enqueued", "executor", "holder main")
            Task.detached(name: "wants main \(number)") {
                self.count()
                await pingMain()
            }
        }
    }

    private func makeMany(_ count: Int) {
        for _ in 0..<count { Task.detached { await self.waitForEver() } }
        Deadlock.startThread("counter") {
            while self.began.load(ordering: .relaxed) < count { usleep(10_000) }
            self.note("all", "", "")
            self.count()
        }
    }

    /// Two tasks that await each other.
    private func makeCircle() {
        let second = Mutex<Task<Void, Never>?>(nil)
        let first = Task.detached(name: "first") { [self] in
            while true {
                if let task = second.withLock({ $0 }) { return await awaitTask(task) }
                await Task.yield()
            }
        }
        note("first", "suspended", "task", "second")
        note("second", "suspended", "task", "first")
        second.withLock { $0 = Task.detached(name: "second") { await self.awaitTask(first) } }
    }

    /// Takes a gigabyte, and keeps mapping and unmapping memory while it is searched.
    private func fillMemory() {
        let bytes = 1 << 30
        memset(malloc(bytes), 0x5a, bytes)
        Deadlock.startThread("unmapper") {
            while true {
                let memory = mmap(nil, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                if let memory, memory != MAP_FAILED {
                    memset(memory, 1, 16 << 20)
                    munmap(memory, 16 << 20)
                }
            }
        }
    }

    /// A thousand tasks a second come and go: pairs that await each other, groups and children.
    private func churn() {
        var number = 0
        while true {
            for _ in 0..<3 {
                number += 1
                let name = "\(number)"
                let short = Task.detached(name: "short \(name)") { try? await Task.sleep(for: .milliseconds(20)) }
                Task.detached(name: "after \(name)") { await short.value }
                Task.detached(name: "crowd \(name)") {
                    await withTaskGroup(of: Void.self) { group in
                        group.addTask(name: "crowd \(name) child") { await short.value }
                        async let other: Void? = short.value
                        _ = await other
                    }
                }
            }
            usleep(14_000)
        }
    }
}

private actor Cache {
    func hold(_ begin: @Sendable () -> Void) {
        begin()
        sleepInHold()
    }
    func ping() {}
}

/// An actor with a thread of its own.
private actor Device {
    private static let queue = OwnThread()
    nonisolated var unownedExecutor: UnownedSerialExecutor { Self.queue.asUnownedSerialExecutor() }
    func hold(_ begin: @Sendable () -> Void) {
        begin()
        sleepInHold()
    }
    func ping() {}
}

private final class OwnThread: SerialExecutor {
    private let jobs = Mutex<[UnownedJob]>([])
    private let wake = DispatchSemaphore(value: 0)

    init() {
        Deadlock.startThread("device") { [unowned(unsafe) self] in
            while true {
                wake.wait()
                if let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                    job.runSynchronously(on: asUnownedSerialExecutor())
                }
            }
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        wake.signal()
    }
}

@MainActor private func holdMain(_ begin: @Sendable () -> Void) {
    begin()
    sleepInHold()
}

@MainActor private func pingMain() {}

@inline(never)
private func sleepInHold() {
    let left = sleep(3_600)
    withExtendedLifetime(left) {}
}
