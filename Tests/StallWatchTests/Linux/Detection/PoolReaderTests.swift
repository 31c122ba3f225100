import Dispatch
import Foundation
import LinuxSupport
import Synchronization
import TestSupport
import Testing

@testable import StackCapture
@testable import StallWatch

/// Tasks that block threads of the pool, of a priority that no other test uses.
@Suite(.serialized) struct PoolReaderTests {
    private static let processors = ProcessInfo.processInfo.activeProcessorCount

    private let mayEnd = DispatchSemaphore(value: 0)

    private func reader() throws -> PoolReader {
        QueueItems.learn()
        let queue: Int64 = try #require(QueueCalibration.ofThisProcess.queue)
        return PoolReader(try TaskReader.ofThisProcess(queue: queue))
    }

    private var pools: WatchedPools {
        var pools = WatchedPools([])
        pools.label = "tasks"
        return pools
    }

    /// Starts tasks that block until `mayEnd` is signaled, inside of a queue of their own.
    private func block(_ count: Int) {
        for number in 0..<count {
            Task.detached(name: "blocked \(number)", priority: .background) { [mayEnd] in
                let end = DispatchTime(uptimeNanoseconds: endOfPatience)
                DispatchQueue(label: "around").sync { _ = mayEnd.wait(timeout: end) }
            }
        }
    }

    @Test func `threads of the pool are found with what waits for one`() throws {
        let reader = try reader()
        let waiting = 3
        block(Self.processors + waiting)
        defer { for _ in 0..<Self.processors + waiting { mayEnd.signal() } }
        var seen: [PoolReader.Sighting] = []
        #expect(
            eventually {
                seen = reader.look(pools).filter { $0.width == Self.processors && $0.waitingTasks == waiting }
                return seen.count == Self.processors
            })
        #expect(Set(seen.map(\.sighting.pool)).count == 1 && Set(seen.map(\.sighting.task)).count == seen.count)
        #expect(seen.allSatisfy { $0.kind == .cooperativePool && $0.label == "tasks" && $0.actor == nil })
        #expect(seen.allSatisfy { ($0.sighting.oldestItem ?? 0) != 0 && reader.isRunning($0) })
        #expect(Set(seen.compactMap(\.sighting.oldestItem)).count == 1)
    }

    /// All threads but one are blocked, and two tasks take turns on that.
    @Test func `a task that has run meanwhile waits as another item`() throws {
        let reader = try reader()
        block(Self.processors - 1)
        defer { for _ in 0..<Self.processors - 1 { mayEnd.signal() } }
        let tasks = (1...2).map { number in
            Task.detached(name: "turn \(number)", priority: .background) {
                var turns = 0
                while !Task.isCancelled, monotonicNow() < endOfPatience {
                    turns += 1
                    await Task.yield()
                }
                return turns
            }
        }
        defer { for task in tasks { task.cancel() } }
        var waited: Set<Int> = []
        #expect(
            eventually {
                waited.formUnion(reader.look(pools).compactMap(\.sighting.oldestItem))
                return waited.count > 20
            }, "\(waited.count)")
    }

    /// A queue at 0x1000, whose root queue at 0x8000 has one item; that of the queue at 0x6000 is not known.
    @Test(
        arguments: [
            (0x1000, 3, 1), (0x1000, 1, 1), (0x1000, 0, 0), (0x1000, -1, 0), (0x6000, 3, nil),
        ] as [(UInt64, Int, Int?)])
    func `threads between two tasks are no tasks that wait`(queue: UInt64, unseen: Int, waiting: Int?) {
        let words: [UInt64: UInt64] = [
            0x1000 + 24: 0x8000, 0x8000 + 104: 0x2000, 0x8000 + 48: 0x2000, 0x2000 + 16: 0, 0x6000 + 24: 0,
        ]
        let layout = QueueItems(head: 104, next: 16)
        #expect(PoolReader.withoutThread(among: unseen, of: queue, layout, Words(words)) == waiting)
    }

    @Test func `threads between two tasks are not counted beside an empty root queue`() {
        let words: [UInt64: UInt64] = [0x1000 + 24: 0x8000, 0x8000 + 104: 0, 0x8000 + 48: 0]
        let layout = QueueItems(head: 104, next: 16)
        #expect(PoolReader.withoutThread(among: 7, of: 0x1000, layout, Words(words)) == 0)
    }

    private func sighting(_ number: Int32, state: Character, waiting: Int?) -> PoolReader.Sighting {
        var reading = ThreadReading(time: 1, onCPU: 1)
        reading.state = state.asciiValue ?? 0
        return .init(
            sighting: .init(thread: number, task: UInt64(number), pool: 0x1000, reading: reading), label: "tasks",
            kind: .cooperativePool, task: 0x2000, width: 3, waitingTasks: waiting)
    }

    @Test(
        arguments: [
            ("RRR", 0, true), ("RSR", 0, true), ("DRS", 0, false), ("RR", 0, false), ("RRR", 1, false),
            ("RRR", nil, false),
        ] as [(String, Int?, Bool)])
    func `only a whole pool that computes and has no task delays none`(states: String, waiting: Int?, isSo: Bool) {
        let seen = states.enumerated().map { sighting(Int32($0 + 1), state: $1, waiting: waiting) }
        #expect(PoolReader.delaysNoTask(seen, in: [0x1000]) == isSo)
        #expect(!PoolReader.delaysNoTask(seen, in: [0x1000, 0x3000]), "the other queue's threads do not run a task")
    }

    @Test func `without a heartbeat that waits it is not known`() {
        let loop = LoopMonitor.stub("tasks", threshold: 1, HeartbeatSource(kind: .cooperativePool) { _ in })
        #expect(!PoolReader.delaysNoTask(loop, among: [loop]) { .unreadable })
    }

    /// In a process with thousands of threads a look takes some 50 ms.
    @Test func `looks take 2 percent of a CPU at most`() throws {
        _ = try TaskReader.ofThisProcess()
        let world = WatchedWorld(at: 0)
        let context = world.context(StubCapturer())
        context.loops = [.stub("main", threshold: 250_000_000, HeartbeatSource(kind: .mainQueue) { _ in })]
        let looks = Atomic<Int>(0)
        let cpu = Atomic<UInt64>(0)
        var supervisor = PoolSupervisor(
            threshold: 1_000_000_000, timeOnCPU: { cpu.add(100_000_000, ordering: .relaxed).newValue },
            tasks: {
                looks.add(1, ordering: .relaxed)
                return (try? TaskReader.ofThisProcess()).map(PoolTasks.reader) ?? .unreadable
            })
        let times: [UInt64] = [1, 5, 6].map { $0 * 1_000_000_000 }
        var seen: [Int] = []
        for (time, next) in zip(times, [6, 6, 11]) {
            world.time.store(time, ordering: .relaxed)
            let due = supervisor.look(at: time, countingFrom: 0, isForced: false, isStarved: false, context)
            #expect(due >= UInt64(next) * 1_000_000_000)
            seen.append(looks.load(ordering: .relaxed))
        }
        #expect(seen == [1, 1, 2])
    }

    @Test func `a thread is not of the pool if that is not watched`() throws {
        #expect(try reader().look(WatchedPools([])).isEmpty)
        #expect(WatchedPools([]).isEmpty && !pools.isEmpty)
    }
}
