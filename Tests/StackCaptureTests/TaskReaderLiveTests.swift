import LinuxSupport
import Synchronization
import Testing

@testable import StackCapture

@Suite struct TaskReaderLiveTests {
    private final class Books: Sendable {
        let continuations = Mutex<[UnsafeContinuation<Void, Never>]>([])
        let begun = Atomic<Int>(0)
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
