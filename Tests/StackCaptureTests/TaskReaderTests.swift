import Glibc
import LinuxSupport
import Synchronization
import TestSupport
import Testing

@testable import StackCapture

@Suite struct TaskReaderTests {
    @Test func `the tasks of this runtime have the known layout`() {
        let calibration = TaskCalibration()
        #expect(calibration.problem == nil)
        #expect(calibration.metadata != 0 && calibration.activeExecutor != nil && calibration.adapter != 0)
        #expect(calibration.continuation != 0)
    }

    @Test func `a runtime that says that its layout is another one is not read`() {
        let words = "this Swift runtime's internal_layout_version is 2, and only 1 is known"
        #expect(TaskCalibration.exportedMismatch { $0 == "internal_layout_version" ? 2 : nil } == words)
        let known = [
            "internal_layout_version": SwiftTaskMemory.layoutVersion, "asyncTaskSize": SwiftTaskMemory.taskBytes,
        ]
        #expect(
            TaskCalibration.exportedMismatch { known[$0] } == nil
                && TaskCalibration.exportedMismatch { _ in nil } == nil)
        #expect(
            TaskCalibration.exportedMismatch { $0 == "asyncTaskSize" ? 8 : nil }?.contains("asyncTaskSize is 8,")
                == true)
    }

    @Test func `only private writable memory without a file is searched`() {
        let maps = """
            1000-2000 r--p 00000000 08:01 77 /bin/app
            2000-3000 rw-p 00000000 08:01 77 /bin/app
            3000-5000 rw-p 00000000 00:00 0 [heap]
            5000-6000 rw-s 00000000 00:00 0
            6000-7000 rw-p 00000000 00:00 0
            7000-8000 rw-p 00000000 00:00 0 [stack]
            9000-8000 rw-p 00000000 00:00 0
            """
        #expect(TaskReader.ranges(in: maps) == [0x3000..<0x5000, 0x6000..<0x7000])
    }

    /// The memory of a task that has ended is used again, mostly for the next one.
    @Test func `a thread has left a task that ended, also if the next one is at the same address`() {
        let tasks = [
            SwiftTask(address: 0x1000, id: 7, isCanceled: false, isRunning: true),
            SwiftTask(address: 0x2000, id: 8, isCanceled: false, isRunning: true),
        ]
        let threads = [
            TaskThread(id: 91, task: 0x1000, executor: 0), TaskThread(id: 92, task: 0x2000, executor: 0x60),
            TaskThread(id: 93, task: 0, executor: 0x70),
        ]
        let reading = TaskReading(tasks: tasks, threads: threads)
        func left(
            _ now: [TaskThread], _ ids: [UInt64: UInt64] = [0x1000: 7, 0x2000: 8]
        ) -> [Set<Int32>] {
            let left = reading.left(now) { ids[$0] }
            return [left.tasks, left.executors]
        }
        #expect(left(threads) == [[], []])
        #expect(left(threads, [0x1000: 9, 0x2000: 8]) == [[91], []])
        #expect(left([]) == [[91, 92], [92, 93]])
        // An actor with many short jobs.
        let next = [threads[0], TaskThread(id: 92, task: 0x3000, executor: 0x60), threads[2]]
        #expect(left(next) == [[92], []])
    }

    /// A task that waits for a continuation, with a name, a record behind that leads back to it, and a circular chain.
    private static let sound: [UInt64: UInt64] = {
        var memory: [UInt64: UInt64] = [0x1000: 0xabc0, 0x1020: 7 << 32, 0x1038: 0x77, 0x1040: 0x3000, 0x1060: 0x4015]
        for index in 0..<UInt64(31) where memory[0x1000 + 8 * index] == nil { memory[0x1000 + 8 * index] = 0 }
        memory[0x1068] = 0x2000
        memory[0x10a0] = 0x2000
        for (index, word) in [0, 0x2000, 0x3000, 0, 2, 0x1000].enumerated() {
            memory[0x2000 + 8 * UInt64(index)] = UInt64(word)
        }
        memory[0x3000] = 0x3000
        memory[0x3008] = 0x99
        return memory
    }()

    private static func task(_ changes: [UInt64: UInt64?] = [:]) -> SwiftTask? {
        var memory = sound
        for (address, word) in changes { memory[address] = word }
        return SwiftTaskMemory(Words(memory), metadata: 0xabc0).stableTask(at: 0x1000)
    }

    @Test func `circular lists end at their bounds`() {
        let task = Self.task()
        #expect(task?.id == 7 && task?.dependency == .continuation)
        #expect(task?.callers.count == SwiftTaskMemory.maximumCallers)
    }

    /// A job that is enqueued names no executor if its task prefers one: a record of the task does.
    @Test func `a task waits for the executor that it prefers`() {
        let enqueued: [UInt64: UInt64?] = [0x1060: 0x5015, 0x2020: 4, 0x2010: 0, 0x2008: 0x4000, 0x4008: 0]
        let record: [UInt64: UInt64?] = [0x4000: 5, 0x4010: 0x7f01, 0x4018: 0x7770]
        #expect(Self.task(enqueued.merging(record) { $1 })?.dependency == .taskExecutor(0x7770))
        #expect(Self.task(enqueued.merging(record.merging([0x4000: 4]) { $1 }) { $1 })?.dependency == .executor(0))
    }

    @Test(
        arguments: [
            [0x1000: 0xabc8], [0x1020: 1], [0x1060: 0x6015], [0x1060: 0x15], [0x1060: 0x5015], [0x10a0: 0],
            [0x10a0: 0x2001], [0x2028: 0x1008], [0x2020: 9], [0x2000: 1], [0x10e0: nil],
        ] as [[UInt64: UInt64?]])
    func `a damaged task is none`(changes: [UInt64: UInt64?]) {
        #expect(Self.task(changes) == nil)
    }

    /// A group at 0x5000 with two child tasks.
    private static let group: [UInt64: UInt64] = {
        let ofGroup = next + 8
        var memory: [UInt64: UInt64] = [0x5000: 0xfeed, 0x5008: 2, 0x5010: 0, 0x5018: 0x6000, 0x5020: 0x7000]
        for child in [0x6000, 0x7000] as [UInt64] {
            for address in stride(from: child, through: child + ofGroup, by: 8) { memory[address] = 0 }
            (memory[child], memory[child + 32], memory[child + ofGroup]) = (0xabc0, 1 << 26 | child << 32, 0x5000)
        }
        memory[0x6000 + next] = 0x7000
        return memory
    }()
    /// Where a task has the next child of its group, before the group: behind its parent; a task's size depends on the
    /// architecture.
    private static let next = SwiftTaskMemory.taskBytes + 8

    @Test(
        arguments: [
            ([:], [0x6000, 0x7000]), ([0x5018: 0], []), ([0x5008: 1], nil),
            ([0x7000 + next: 0x6000], nil), ([0x7008 + next: 1], nil), ([0x7020: 0], nil), ([0x7000: 1], nil),
            ([0x5018: 0x9000], nil), ([0x6000 + next: 0x7008], nil),
        ] as [([UInt64: UInt64], [UInt64]?)])
    func `a group's children are its own, and a damaged list is none`(changes: [UInt64: UInt64], expected: [UInt64]?) {
        let memory = Words(Self.group.merging(changes) { $1 })
        #expect(SwiftTaskMemory(memory, metadata: 0xabc0).children(ofGroup: 0x5000) == expected)
    }

    @Test func `a task that has not begun is in its closure`() {
        // The entry of a thunk, whose values are another thunk, whose values are the closure.
        let up: UInt64 = 32 << 32 | 0x1000
        let down: UInt64 = 48 << 32 | 0xffff_f000
        let started: [UInt64: UInt64] = [
            0x2fe8: 0x50_0000, 0x2ff0: 0x8000, 0x8000: 1, 0x8008: 3, 0x8010: 0x51_0010, 0x8018: 0x8800, 0x8020: 0,
            0x8028: 0, 0x8030: 0, 0x51_0010: up, 0x8800: 1, 0x8808: 3, 0x8810: 7, 0x8818: 0x51_0018,
            0x8820: 0, 0x8828: 0, 0x8830: 0, 0x51_0018: down,
        ]
        func callers(_ changes: [UInt64: UInt64] = [:]) -> [UInt64]? {
            let memory = Self.sound.merging(started) { $1 }.merging(changes) { $1 }
            let task = SwiftTaskMemory(Words(memory), metadata: 0xabc0, adapter: 0x77).stableTask(at: 0x1000)
            return task.map { Array($0.callers.prefix { $0 != 0x99 }) }
        }
        #expect(callers() == [0x50_f018, 0x51_1010, 0x50_0000])
        // No async function: the size of its context is odd, or it is far from the thunk.
        #expect(callers([0x51_0018: up + (1 << 32)]) == [0x51_1010, 0x50_0000])
        #expect(callers([0x8010: 0x8_0000_0010, 0x8_0000_0010: up]) == [0x50_0000])
        #expect(callers([0x2fe8: 0]) == [0x77])
        #expect(Self.task()?.callers.first == 0x77)
    }

    @Test func `a job that has run has other traces`() {
        func traces(_ changes: [UInt64: UInt64] = [:], at address: UInt64 = 0x1000, adapter: UInt64 = 0) -> Int {
            // The waiting function's frame, and that of its caller.
            var memory: [UInt64: UInt64] = [:]
            for frame in [0x3000, 0x3800] as [UInt64] {
                for index in 0..<UInt64(16) { memory[frame + 8 * index] = 0 }
            }
            memory[0x3000] = 0x3800
            memory = Self.sound.merging(memory) { $1 }.merging(changes) { $1 }
            return SwiftTaskMemory(Words(memory), metadata: 0xabc0, adapter: adapter).traces(at: address)
        }
        #expect(traces() == traces() && traces() != 0)
        // A new task, another function, a variable of it, one of its caller.
        for change in [0x1020: 8 << 32, 0x1038: 0x78, 0x3018: 5, 0x3820: 5] as [UInt64: UInt64] {
            #expect(traces([change.key: change.value]) != traces())
        }
        // Of a task that has not begun, what is behind its first frame is not its own.
        #expect(traces([0x3018: 5], adapter: 0x77) == traces(adapter: 0x77))
        #expect(traces([0x1038: 0x78], adapter: 0x77) != traces(adapter: 0x77))
        // Priorities, and what no function has.
        for change in [0x1060: 0x4016, 0x3900: 5] as [UInt64: UInt64] {
            #expect(traces([change.key: change.value]) == traces())
        }
        // A job that is no task: its object's state.
        #expect(traces(at: 0x1080) == traces(at: 0x1080))
        #expect(traces([0x1068: 7], at: 0x1080) != traces(at: 0x1080))
    }

    @Test func `a task that keeps changing is not read`() {
        #expect(SwiftTaskMemory(Changing(), metadata: 0xabc0).stableTask(at: 0x1000) == nil)
    }

    /// The task's resume function is another one at each reading.
    private final class Changing: MemoryReading {
        private var words = TaskReaderTests.sound
        private var count: UInt64 = 0
        func bytes(at address: UInt64, count length: Int) -> [UInt8]? {
            if address == 0x1000 {
                count += 1
                words[0x1038] = 0x1_0000 + count
            }
            return Words(words).bytes(at: address, count: length)
        }
    }
}

/// Readings of this process.
@Suite struct TaskReaderLiveTests {
    private final class Waiting: Sendable {
        let continuations = Mutex<[UnsafeContinuation<Void, Never>]>([])
    }

    @Test func `a task's chain is followed through groups without a search`() async {
        let waiting = Waiting()
        let address = Atomic<UInt64>(0)
        let count = 10
        let first = Task.detached {
            address.store(SwiftTask.currentAddress, ordering: .relaxed)
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<count {
                    group.addTask(name: "child \(index)") {
                        await withUnsafeContinuation { continuation in
                            waiting.continuations.withLock { $0.append(continuation) }
                        }
                    }
                }
                await group.waitForAll()
            }
        }
        while waiting.continuations.withLock({ $0.count }) < count { await Task.yield() }
        let reader = TaskReader(TaskCalibration(), ContextLayout())
        var names: Set<String> = []
        // The last ones are about to wait, and may get no CPU for a while.
        let end = endOfPatience
        while names.count < count, monotonicNow() < end {
            let reading = reader.read(from: [address.load(ordering: .relaxed)], isSearching: false)
            #expect(reading.searchedBytes == 0)
            let waiting = reading.tasks.filter { $0.group != nil && $0.dependency == .continuation }
            names = Set(waiting.map { String(decoding: $0.name ?? [], as: UTF8.self) })
        }
        #expect(names == Set((0..<count).map { "child \($0)" }))
        for continuation in waiting.continuations.withLock({ $0 }) { continuation.resume() }
        await first.value
    }

    @Test func `a guard page below a stack is not swapped out`() throws {
        let page = sysconf(Int32(_SC_PAGESIZE))
        let memory = try #require(mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        try #require(memory != MAP_FAILED)
        defer { munmap(memory, 2 * page) }
        let reader = TaskReader(TaskCalibration(), ContextLayout())
        func isSwapped() -> Bool { reader.read().incompleteReason?.contains("swapped out") == true }
        let before = isSwapped()
        // MADV_GUARD_INSTALL, since Linux 6.13: without it, there is nothing that could be mistaken.
        let isInstalled = madvise(memory, page, 102) == 0
        #expect(before || !isSwapped(), "installed: \(isInstalled)")
    }
}
