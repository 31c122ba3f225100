import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct DispatchWorkersTests {
    /// What an item sees of its own thread.
    private struct Seen: Sendable {
        var isInDrain: Bool
        var worker: DispatchWorkers.Worker?
    }

    /// Runs items until one runs on a followed worker, and returns what it sees.
    ///
    /// No thread waits for it, because tests are items themselves. A worker whose drain began before any test followed the
    /// workers is followed from its next drain on.
    private func seen(_ run: (@escaping @Sendable () -> Void) -> Void) async throws -> Seen {
        try #require(DispatchWorkers.follow())
        for _ in 0..<4_000 {
            let seen = await withCheckedContinuation { continuation in
                run {
                    let thread = ownThread()
                    continuation.resume(
                        returning: Seen(
                            isInDrain: DispatchWorkers.isCurrentInDrain,
                            worker: DispatchWorkers.all.first { $0.thread == thread }))
                }
            }
            if seen.worker != nil { return seen }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw CancellationError()
    }

    @Test func `an item of a serial queue runs in a drain, outside of the pools`() async throws {
        let queue = DispatchQueue(label: "serial")
        let seen = try await seen { queue.async(execute: $0) }
        #expect(seen.isInDrain)
        #expect(seen.worker?.isInDrain == true)
        #expect(seen.worker?.isInPool == false)
        let thread = try #require(seen.worker?.thread)
        #expect(
            eventually { DispatchWorkers.all.first { $0.thread == thread }?.isInDrain != true },
            "the worker waits again, or has ended")
    }

    @Test func `items of a global queue and of tasks run in a pool`() async throws {
        let global = try await seen { DispatchQueue.global().async(execute: $0) }
        #expect(global.worker?.isInPool == true)
        let task = try await seen { item in _ = Task.detached { item() } }
        #expect(task.worker?.isInPool == true)
    }

    /// Such a queue has a pool of its own around each item.
    @Test func `a queue with a pool per item leaves no drain open`() async throws {
        let queue = DispatchQueue(label: "pools", autoreleaseFrequency: .workItem)
        let thread = try #require(try await seen { queue.async(execute: $0) }.worker?.thread)
        #expect(eventually { DispatchWorkers.all.first { $0.thread == thread }?.isInDrain != true })
    }

    @Test func `another thread is in no drain`() throws {
        let queue = DispatchQueue(label: "sync")
        let isInDrain = Mutex<Bool?>(nil)
        let thread = try WorkerThread(name: "test-app") {
            queue.sync { isInDrain.withLock { $0 = DispatchWorkers.isCurrentInDrain } }
        }
        thread.join()
        #expect(isInDrain.withLock { $0 } == false)
    }

    @Test func `a drain calls every notice, until it is gone`() async throws {
        let calls = Atomic<Int>(0)
        func run() async throws { _ = try await seen { DispatchQueue(label: "noticed").async(execute: $0) } }
        do {
            let notice = try #require(DrainNotice { calls.wrappingAdd(1, ordering: .relaxed) })
            try await run()
            #expect(calls.load(ordering: .relaxed) > 0)
            withExtendedLifetime(notice) {}
        }
        let before = calls.load(ordering: .relaxed)
        try await run()
        #expect(calls.load(ordering: .relaxed) == before)
    }
}
