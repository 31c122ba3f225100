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
}
