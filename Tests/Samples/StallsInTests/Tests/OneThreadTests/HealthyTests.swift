import Dispatch
import Foundation
import Synchronization
import Testing

private final class Counters: Sendable {
    let now = Atomic(0)
    let most = Atomic(0)
}

/// 30 test cases that need no second thread of the task pool.
struct HealthyTests {
    static let counts = [1, 20, 300]

    /// Tasks that compute at the same time; `stallwatch test --pool 1` leaves one.
    @Test(arguments: counts) func tasksAtOnce(count: Int) async {
        let counters = Counters()
        await withDiscardingTaskGroup { group in
            for _ in 0..<count {
                group.addTask {
                    counters.most.max(counters.now.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
                    compute()
                    counters.now.subtract(1, ordering: .relaxed)
                }
            }
        }
        print("tasks at once: \(counters.most.load(ordering: .relaxed))")
    }

    @Test(arguments: counts) func values(count: Int) async {
        var sum = 0
        for number in 0..<count { sum += await Task { number }.value }
        #expect(sum == count * (count - 1) / 2)
    }

    @Test(arguments: counts) func asyncLet(count: Int) async {
        for _ in 0..<count {
            async let (first, second) = (1, 2)
            #expect(await first + second == 3)
        }
    }

    @Test(arguments: counts) func stream(count: Int) async {
        let (stream, source) = AsyncStream.makeStream(of: Int.self)
        Task {
            for number in 0..<count { source.yield(number) }
            source.finish()
        }
        var received = 0
        for await _ in stream { received += 1 }
        #expect(received == count)
    }

    @Test(arguments: counts) func continuation(count: Int) async {
        for number in 0..<count {
            let answer = await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: number) }
            }
            #expect(answer == number)
        }
    }

    @Test(arguments: counts) func actor(count: Int) async {
        let counter = Counter()
        for _ in 0..<count { await counter.add() }
        #expect(await counter.count == count)
    }

    @Test(arguments: counts) func yield(count: Int) async {
        for _ in 0..<count { await Task.yield() }
    }

    @Test(arguments: counts) func sleep(count: Int) async throws {
        try await Task.sleep(for: .milliseconds(count))
    }

    /// Blocks, but until a thread signals that is not the pool's.
    @Test(arguments: counts) func threadSignals(count: Int) async {
        for _ in 0..<count {
            let done = DispatchSemaphore(value: 0)
            Thread.detachNewThread { done.signal() }
            wait(for: done)
        }
    }

    @Test(arguments: counts) func queue(count: Int) async {
        let queue = DispatchQueue(label: "notes")
        #expect((0..<count).reduce(0) { sum, _ in queue.sync { sum + 1 } } == count)
    }
}

private actor Counter {
    var count = 0
    func add() { count += 1 }
}

private func wait(for done: DispatchSemaphore) { done.wait() }

private func compute() {
    var value: UInt64 = 1
    for _ in 0..<10_000 { value = value &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
    #expect(value != 0)
}
