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

    private func seen(_ run: (@escaping @Sendable () -> Void) -> Void) throws -> Seen {
        try #require(DispatchWorkers.follow())
        let seen = Mutex<Seen?>(nil)
        let isDone = Semaphore()
        run {
            let thread = ownThread()
            seen.withLock {
                $0 = Seen(
                    isInDrain: DispatchWorkers.isCurrentInDrain,
                    worker: DispatchWorkers.all.first { $0.thread == thread })
            }
            isDone.post()
        }
        try #require(isDone.wait(until: monotonicNow() + 30_000_000_000))
        return try #require(seen.withLock { $0 })
    }

    @Test func `an item of a serial queue runs in a drain, outside of the pools`() throws {
        let queue = DispatchQueue(label: "serial")
        let seen = try seen { queue.async(execute: $0) }
        #expect(seen.isInDrain)
        #expect(seen.worker?.isInDrain == true)
        #expect(seen.worker?.isInPool == false)
        let thread = try #require(seen.worker?.thread)
        #expect(
            eventually { DispatchWorkers.all.first { $0.thread == thread }?.isInDrain != true },
            "the worker waits again, or has ended")
    }

    @Test func `items of a global queue and of tasks run in a pool`() throws {
        #expect(try seen { DispatchQueue.global().async(execute: $0) }.worker?.isInPool == true)
        #expect(try seen { item in _ = Task.detached { item() } }.worker?.isInPool == true)
    }

    /// Such a queue has a pool of its own around each item.
    @Test func `a queue with a pool per item leaves no drain open`() throws {
        let queue = DispatchQueue(label: "pools", autoreleaseFrequency: .workItem)
        let thread = try #require(try seen { queue.async(execute: $0) }.worker?.thread)
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

    @Test func `a drain calls every notice, until it is gone`() throws {
        let calls = Atomic<Int>(0)
        func run() throws { _ = try seen { DispatchQueue(label: "noticed").async(execute: $0) } }
        do {
            let notice = try #require(DrainNotice { calls.wrappingAdd(1, ordering: .relaxed) })
            try run()
            #expect(calls.load(ordering: .relaxed) > 0)
            withExtendedLifetime(notice) {}
        }
        let before = calls.load(ordering: .relaxed)
        try run()
        #expect(calls.load(ordering: .relaxed) == before)
    }
}
