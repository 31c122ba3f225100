import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

/// A program with a control socket whose 500 named tasks wait in known ways, until it is killed; it prints each task
/// with what it waits for, as `E`, the name, the state, the wait and the target, with tabs between.
final class TaskHost: Sendable {
    private let began = Atomic<Int>(0)
    private let continuations = Mutex<[UnsafeContinuation<Void, Never>]>([])
    private let edges = Mutex<[String]>([])
    private let cache = Cache()
    private let device = Device()

    static func run(directory: String, kind: String, count: Int) throws {
        var configuration = StallMonitor.Configuration(threshold: .seconds(60), outputs: [])
        configuration.control = .socket(directory: directory)
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        let host = TaskHost()
        switch kind {
        case "graph": host.makeGraph()
        case "churn":
            host.makeGraph()
            Deadlock.startThread("churn") { host.churn() }
        case "damaged":
            host.began.subtract(1, ordering: .relaxed)
            let leaf = host.makeGraph()
            Deadlock.startThread("damager") { host.makeDamage(leaf) }
        case "large":
            host.makeMany(count)
            host.fillMemory()
        case "circle": host.makeCircle()
        case "none": break
        default: exit(64)
        }
        Deadlock.startThread("teller") {
            // A task counts just before it begins to wait.
            host.waitForAll(but: 0)
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

    /// Waits until all tasks that are noted have begun, except for some.
    private func waitForAll(but number: Int) {
        while began.load(ordering: .relaxed) < edges.withLock({ $0.count }) - number { usleep(10_000) }
    }

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

    /// Returns the first leaf's address.
    @discardableResult private func makeGraph() -> UInt {
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
        for holder in ["Cache", "Device", "main"] {
            for number in 0..<39 { note("wants \(holder) \(number)", "enqueued", "executor", "holder \(holder)") }
        }
        Deadlock.startThread("wanter") { self.makeEnqueued() }
        // A task has one field, its object.
        return unsafeBitCast(leaves[0], to: UInt.self)
    }

    /// Fills memory with what looks like tasks: a million words, and copies of a waiting task whose lists are circular,
    /// have a million records, or lead to memory that is not there.
    private func makeDamage(_ leaf: UInt) {
        waitForAll(but: 3 * 39 + 1)
        let words = UnsafePointer<UInt>(bitPattern: leaf)
        guard let words, let dense = Self.ownMapping(words: 2_000_000), let copies = Self.ownMapping(words: 64_000),
            let records = Self.ownMapping(words: 2_000_000)
        else { exit(70) }
        for index in 0..<1_000_000 {
            dense[2 * index] = words[0]
            // A status record of no known kind, and the next one.
            records[2 * index] = 9
            records[2 * index + 1] = UInt(bitPattern: records + 2 * (index + 1))
        }
        for number in 0..<1_000 {
            let copy = copies + 64 * number
            let record = copy + 40
            for index in 0..<29 { copy[index] = words[index] }
            // Another id; its record awaits the task itself, and is followed by itself.
            copy[18] = UInt(1 + number)
            let own = UInt(bitPattern: copy)
            for (index, word) in [0, UInt(bitPattern: record), own, 0, 1, own].enumerated() { record[index] = word }
            copy[20] = UInt(bitPattern: record)
            copy[13] = UInt(bitPattern: number % 2 == 0 ? record : records)
            copy[8] = own
            // Not of the words with the id: a copy with the id of a task is that task to any reader.
            let changed = 1 + number / 4 % 28
            guard number % 4 == 0, changed != 4, changed != 18 else { continue }
            copy[changed] =
                [UInt.random(in: 0...UInt.max), own, 8, 0x7000_0000_0000].randomElement() ?? 0
        }
        count()
    }

    /// Memory that no other mapping adjoins.
    private static func ownMapping(words: Int) -> UnsafeMutablePointer<UInt>? {
        let page = 4_096
        let bytes = (8 * words + page - 1) / page * page
        let memory = mmap(nil, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let memory, memory != MAP_FAILED, mprotect(memory + page, bytes, PROT_READ | PROT_WRITE) == 0 else {
            return nil
        }
        return (memory + page).assumingMemoryBound(to: UInt.self)
    }

    private func makeEnqueued() {
        waitForAll(but: 3 * 39)
        for number in 0..<39 {
            Task.detached(name: "wants Cache \(number)") {
                self.count()
                await self.cache.ping()
            }
            Task.detached(name: "wants Device \(number)") {
                self.count()
                await self.device.ping()
            }
            Task.detached(name: "wants main \(number)") {
                self.count()
                await pingMain()
            }
        }
    }

    private func makeMany(_ count: Int) {
        note("all", "", "")
        began.subtract(count - 1, ordering: .relaxed)
        for _ in 0..<count { Task.detached { await self.waitForEver() } }
    }

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
                let life = Duration.milliseconds(1 + number % 200)
                let short = Task.detached(name: "short \(name)") { try? await Task.sleep(for: life) }
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

/// What a task has to wait for: a call that does nothing would need no turn on an actor.
private let pings = Atomic<Int>(0)

private actor Cache {
    func hold(_ begin: @Sendable () -> Void) {
        begin()
        sleepInHold()
    }
    @inline(never) func ping() { pings.add(1, ordering: .relaxed) }
}

private actor Device {
    private static let queue = OwnThread()
    nonisolated var unownedExecutor: UnownedSerialExecutor { Self.queue.asUnownedSerialExecutor() }
    func hold(_ begin: @Sendable () -> Void) {
        begin()
        sleepInHold()
    }
    @inline(never) func ping() { pings.add(1, ordering: .relaxed) }
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

@MainActor @inline(never) private func pingMain() { pings.add(1, ordering: .relaxed) }

@inline(never)
private func sleepInHold() {
    let left = sleep(3_600)
    withExtendedLifetime(left) {}
}
