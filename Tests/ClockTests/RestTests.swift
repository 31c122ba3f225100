import Dispatch
import Foundation
import StallReports
import StallWatch
import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport
@testable import ScenarioKit

/// A watchdog that sleeps while loops without observers have no work.
@Suite(.serialized) struct RestTests {
    private static let threshold = Duration.milliseconds(250)

    #if NIO
        @Test func `idle event loops and queues cause no wake-up, and their stalls are found`() async throws {
            let steal = CPUSteal()
            try await withDirectory { directory in
                let child = try DemoProgram.start(
                    .resting, threshold: Self.threshold, directory: directory, stall: .milliseconds(600))
                // The event loops' places are learned with three heartbeats, and unfollowed workers end after 5 s.
                try await Task.sleep(for: .seconds(7))
                let names = ["stallwatch-dog", "stallwatch-evt"]
                let before = child.wakeUps { names.contains($0) || $0.hasPrefix("NIO-ELT") }
                try await Task.sleep(for: .seconds(5))
                let after = child.wakeUps { names.contains($0) || $0.hasPrefix("NIO-ELT") }
                #expect(before.count == 6, "the watchdog, its helper and four event loops: \(before)")
                print("wake-ups of idle loops in 5 s: \(after.map { "\($0.key) \($0.value - (before[$0.key] ?? 0))" })")
                steal.excuses { #expect(before == after) }
                // A queue, an event loop, and a queue that a thread occupies which nothing follows.
                for request in ["q", "n", "t"] {
                    child.send(request)
                    try await Task.sleep(for: .milliseconds(1_500))
                }
                let result = try #require(try await child.result())
                #expect(result.injectedMilliseconds.count == 3)
                #expect(result.files.count == 3, "\(result)")
                let loops = try result.files.map { file in
                    try StallReport(jsonData: [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(file)"))))
                }
                #expect(loops.map(\.loop.label).sorted() == ["nio", "queue-0", "queue-1"])
                for report in loops {
                    // At most half a threshold, plus the time to wake up.
                    let uncertainty = try #require(report.startUncertaintyMilliseconds)
                    steal.excuses { #expect(uncertainty < 250, "\(report.loop.label)") }
                }
            }
        }
    #endif

    /// While the watchdog sleeps until the queue's next look, a turn of the other loop has to wake it.
    @Test func `a short threshold counts beside a long one`() throws {
        let monitor = try StallMonitor(.init(reports: .none))
        let probe = LoopProbe(label: "short")
        try monitor.watch(.probe(probe, threshold: .milliseconds(50)))
        try monitor.watch(.queue(DispatchQueue(label: "long"), label: "long", threshold: .seconds(60)))
        try monitor.start()
        defer { monitor.stop() }
        usleep(500_000)
        for _ in 0..<3 {
            probe.beginTurn()
            usleep(150_000)
            probe.endTurn()
            usleep(300_000)
        }
        #expect(eventually(within: 5) { monitor.statistics.stalls == 3 }, "\(monitor.statistics.stalls)")
    }
}

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
