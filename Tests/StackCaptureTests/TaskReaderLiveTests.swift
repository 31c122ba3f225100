import Glibc
import LinuxSupport
import Synchronization
import Testing

@testable import StackCapture

@Suite struct TaskReaderLiveTests {
    private final class Books: Sendable {
        let continuations = Mutex<[UnsafeContinuation<Void, Never>]>([])
        let begun = Atomic<Int>(0)
    }

    @Test func `a task's chain is followed through groups without a search`() async {
        let books = Books()
        let address = Atomic<UInt64>(0)
        let count = 10
        let first = Task.detached {
            address.store(SwiftTask.currentAddress, ordering: .relaxed)
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<count {
                    group.addTask(name: "child \(index)") {
                        await withUnsafeContinuation { continuation in
                            books.continuations.withLock { $0.append(continuation) }
                        }
                    }
                }
                await group.waitForAll()
            }
        }
        while books.continuations.withLock({ $0.count }) < count { await Task.yield() }
        let reader = TaskReader(TaskCalibration(), ContextLayout())
        var names: Set<String> = []
        // The last ones are about to wait.
        for _ in 0..<100 where names.count < count {
            let reading = reader.read(from: [address.load(ordering: .relaxed)], isSearching: false)
            #expect(reading.searchedBytes == 0)
            let waiting = reading.tasks.filter { $0.group != nil && $0.dependency == .continuation }
            names = Set(waiting.map { String(decoding: $0.name ?? [], as: UTF8.self) })
        }
        #expect(names == Set((0..<count).map { "child \($0)" }))
        for continuation in books.continuations.withLock({ $0 }) { continuation.resume() }
        await first.value
    }

    @Test func `tasks that wait for tasks are found with their edges`() async {
        let calibration = TaskCalibration()
        let count = 100
        let books = Books()
        let leaves = (0..<count).map { index in
            Task.detached(name: "leaf \(index)") {
                await withUnsafeContinuation { continuation in books.continuations.withLock { $0.append(continuation) }
                }
            }
        }
        let waiters = (0..<count).map { index in
            Task.detached(name: "waiter \(index)") {
                books.begun.add(1, ordering: .relaxed)
                await leaves[index].value
            }
        }
        // Other tests may have all threads of the pool for a while.
        while books.begun.load(ordering: .relaxed) < count || books.continuations.withLock({ $0.count }) < count {
            await Task.yield()
        }
        let reader = TaskReader(calibration, ContextLayout())
        var (wrong, right) = (0, 0)
        // The last ones are about to wait.
        for _ in 0..<100 where right < 2 * count {
            let reading = reader.read()
            let names = Dictionary(
                reading.tasks.map { ($0.address, String(decoding: $0.name ?? [], as: UTF8.self)) }
            ) { first, _ in first }
            right = 0
            for task in reading.tasks {
                let name = names[task.address] ?? ""
                if name.hasPrefix("leaf "), !task.isRunning, task.dependency != .executor(0) {
                    if task.dependency == .continuation { right += 1 } else { wrong += 1 }
                }
                if name.hasPrefix("waiter "), case .task(let target) = task.dependency {
                    if names[target] == "leaf \(name.dropFirst(7))" { right += 1 } else { wrong += 1 }
                }
            }
        }
        #expect(wrong == 0)
        #expect(right == 2 * count)
        for continuation in books.continuations.withLock({ $0 }) { continuation.resume() }
        for waiter in waiters { await waiter.value }
    }

    /// What may hold a continuation, and a task that waits again and again.
    private final class Keepers: Sendable {
        typealias Continuation = CheckedContinuation<Void, Never>

        let list = Mutex<[Continuation]>([])
        let closures = Mutex<[@Sendable () -> Void]>([])
        let memory = Mutex<UInt>(0)
        let mayEnd = Atomic<Bool>(false)

        /// Starts a task for each way; those whose name does not begin with `held` or `again` have lost their continuation.
        func start() {
            Task.detached(name: "held by a list") {
                await withCheckedContinuation { kept in self.list.withLock { $0.append(kept) } }
            }
            Task.detached(name: "held by a closure") {
                await withCheckedContinuation { kept in self.closures.withLock { $0.append { kept.resume() } } }
            }
            Task.detached(name: "held by memory of C") {
                await withCheckedContinuation { kept in
                    let place = UnsafeMutablePointer<Continuation>.allocate(capacity: 1)
                    place.initialize(to: kept)
                    self.memory.withLock { $0 = UInt(bitPattern: place) }
                }
            }
            for number in 0..<3 {
                let milliseconds = [1, 10, 50][number]
                Task.detached(name: "again \(number)") {
                    while !self.mayEnd.load(ordering: .relaxed) {
                        await withCheckedContinuation { kept in
                            Task.detached {
                                try? await Task.sleep(for: .milliseconds(milliseconds))
                                kept.resume()
                            }
                        }
                    }
                }
                // Swift says so on the standard error.
                Task.detached(name: "lost \(number)") { await withCheckedContinuation { (_: Continuation) in } }
            }
        }

        func end() {
            mayEnd.store(true, ordering: .relaxed)
            for kept in list.withLock({ $0 }) { kept.resume() }
            for resume in closures.withLock({ $0 }) { resume() }
            memory.withLock { address in
                guard let place = UnsafeMutablePointer<Continuation>(bitPattern: address) else { return }
                place.move().resume()
                place.deallocate()
            }
        }
    }

    @Test func `a guard page below a stack is not swapped out`() throws {
        let page = sysconf(Int32(_SC_PAGESIZE))
        let memory = try #require(mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        try #require(memory != MAP_FAILED)
        defer { munmap(memory, 2 * page) }
        let reader = TaskReader(TaskCalibration(), ContextLayout())
        let before = reader.read().incompleteReason
        // MADV_GUARD_INSTALL, since Linux 6.13: without it, there is nothing that could be mistaken.
        let isInstalled = madvise(memory, page, 102) == 0
        #expect(reader.read().incompleteReason == before, "installed: \(isInstalled)")
    }

    @Test func `a continuation is missed if nothing holds it, and only then`() async {
        let keepers = Keepers()
        keepers.start()
        defer { keepers.end() }
        let reader = TaskReader(TaskCalibration(), ContextLayout())
        var (missed, wrong, held): (Int, Set<String>, Set<String>) = (0, [], [])
        // Other tests may have all threads of the pool for a while.
        for _ in 0..<200 where missed < 5 * 3 {
            let waiting = reader.read().tasks.filter { task in
                let name = String(decoding: task.name ?? [], as: UTF8.self)
                return task.dependency == .continuation && ["held", "again", "lost"].contains { name.hasPrefix($0) }
            }
            let (ids, bytes) = reader.tasksWithoutContinuation(among: waiting)
            for task in waiting {
                let name = String(decoding: task.name ?? [], as: UTF8.self)
                guard ids.contains(task.id) else {
                    held.insert(name)
                    continue
                }
                #expect(bytes > 0)
                if name.hasPrefix("lost") { missed += 1 } else { wrong.insert(name) }
            }
            await Task.yield()
        }
        #expect(missed >= 5 * 3)
        #expect(wrong == [])
        #expect(held.isSuperset(of: ["held by a list", "held by a closure", "held by memory of C"]))
    }
}
