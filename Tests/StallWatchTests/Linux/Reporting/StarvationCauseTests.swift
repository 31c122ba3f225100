import LinuxSupport
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

private let images = ImageList([
    .stub(path: "/opt/notes/bin/notes", addresses: 0x10000..<0x20000, isExecutable: true),
    .stub(path: "/usr/lib/libdispatch.so", addresses: 0x40000..<0x50000),
])

@Suite struct StarvationCauseTests {
    private let builder = ReportBuilder.stub([
        "notes": [0x0100: "blockTheHandler", 0x0200: "compress"],
        "libdispatch.so": [0x0010: "_dispatch_worker_thread"],
    ])

    /// Returns the named report of a starvation of a pool with these workers.
    private func report(_ workers: [(address: UInt64, activity: Cause.Kind?)]) -> StallReport {
        report(workers.map { ($0.address, $0.activity, .blocked) })
    }

    private func report(
        _ workers: [(address: UInt64, activity: Cause.Kind?, state: StallReport.ThreadState)]
    ) -> StallReport {
        var sample = StallRecord.Sample(
            age: 250_000_000, isValid: true, stack: .failure(.pool), images: images
        )
        sample.workers = workers.enumerated().map { index, worker in
            StallRecord.OtherThread(
                thread: ThreadIdentity(id: Int32(index + 1), name: nil),
                stack: .success(.stub([worker.address, 0x40010], state: worker.state)), activity: worker.activity)
        }
        return builder.report(of: .stub(kind: .starvation, samples: [sample]))
    }

    @Test func bothWorkersSleepInTheSameFunction() {
        let report = report([(0x10100, .sleep), (0x10100, .sleep)])
        #expect(report.cause?.kind == .sleep)
        #expect(report.cause?.confidence == .likely)
        #expect(report.cause?.summary == "Both busy threads of the pool are in blockTheHandler, sleeping.")
        #expect(report.samples.map(\.isComplete) == [true])
    }

    @Test func `a worker that its capture has stopped is not said to wait for pages`() {
        let running = [(0x10200, .running), (0x10200, .blocked)] as [(UInt64, StallReport.ThreadState)]
        let report = report(running.map { address, state in (address, .paging, state) })
        #expect(report.cause?.confidence == .possible)
        let computing = self.report(running.map { address, _ in (address, .paging, .running) })
        #expect(computing.cause?.kind == .cpu && computing.cause?.confidence == .likely)
        #expect(computing.cause?.summary == "Both busy threads of the pool are in compress, computing.")
        let done = self.report([(0x10200, .lock, .running), (0x10200, nil, .running)])
        #expect(done.cause?.summary == computing.cause?.summary, "the threads are idle after the capture")
    }

    @Test func theLargestGroupOfWorkersDecides() {
        let report = report([(0x10100, .lock), (0x10200, .cpu), (0x10100, .lock)])
        #expect(report.cause?.kind == .lock)
        #expect(report.cause?.confidence == .possible)
        let sentence = "2 of 3 busy threads of the pool are in blockTheHandler, waiting for a lock or a signal."
        #expect(report.cause?.summary == sentence)
    }

    /// libdispatch gives its threads to serial queues, too, which do not keep the pool's tasks from running.
    @Test(
        arguments: [
            (2, "Both threads of the pool are in blockTheHandler, waiting for a lock or a signal."),
            (nil, "Both busy threads of the pool are in blockTheHandler, waiting for a lock or a signal."),
            (
                3,
                "Both busy threads of the pool, which has 3 for each priority, are in blockTheHandler, waiting for a lock or a signal."
            ),
        ] as [(Int?, String)])
    func `the threads of a task pool are those that run tasks`(width: Int?, sentence: String) {
        let builder = ReportBuilder.stub([
            "notes": [0x0100: "blockTheHandler", 0x0200: "compress"],
            "libdispatch.so": [
                0x0010: "_dispatch_worker_thread", 0x0020: "swift_job_run", 0x0030: "_dispatch_lane_serial_drain",
            ],
        ])
        let (task, queue): ([UInt64], [UInt64]) = ([0x10100, 0x40020, 0x40010], [0x10200, 0x40030, 0x40010])
        let stacks = [task, queue, queue, task, queue, [0x10200, 0x40020, 0x40030, 0x40010], [0x40010]]
        var sample = StallRecord.Sample(age: 250_000_000, isValid: true, stack: .failure(.pool), images: images)
        sample.workers = stacks.enumerated().map { index, stack in
            StallRecord.OtherThread(
                thread: ThreadIdentity(id: Int32(index + 1), name: nil), stack: .success(.stub(stack)), activity: .lock)
        }
        var record = StallRecord.stub(kind: .starvation, samples: [sample])
        (record.loop.kind, record.poolWidth) = (.cooperativePool, width)
        let report = builder.report(of: record)
        #expect(report.cause?.summary == sentence)
        #expect(report.samples[0].workers?.flatMap { $0.threads.map(\.id) } == [1, 4])
    }

    /// Its threads have been learned, and none has a function of libdispatch on its stack.
    @Test(
        arguments: [
            (2, "Both threads of the pool are in blockTheHandler, sleeping."),
            (3, "Both busy threads of the pool, which has 3, are in blockTheHandler, sleeping."),
        ])
    func `all threads that a thread pool is known to have count`(width: Int, sentence: String) {
        var sample = StallRecord.Sample(age: 250_000_000, isValid: true, stack: .failure(.pool), images: images)
        sample.workers = (Int32(1)...2).map { id in
            StallRecord.OtherThread(
                thread: ThreadIdentity(id: id, name: nil), stack: .success(.stub([0x10100, 0x10300])), activity: .sleep)
        }
        var record = StallRecord.stub(kind: .starvation, samples: [sample])
        (record.loop.kind, record.poolWidth) = (.threadPool, width)
        let report = builder.report(of: record)
        #expect(report.cause?.summary == sentence)
        #expect(report.samples[0].workers?.flatMap { $0.threads.map(\.id) } == [1, 2])
    }

    @Test(
        arguments: [
            (
                0x50, .lock,
                "waiting for a semaphore; if the code that signals it waits for this pool, that code cannot run"
            ),
            (
                0x60, .lock,
                "waiting for a dispatch group; if the code that leaves it waits for this pool, that code cannot run"
            ),
            (0x70, .lock, "waiting for a lock or a signal"),
        ] as [(UInt64, Cause.Kind, String)])
    func `what the workers wait in is named`(offset: UInt64, activity: Cause.Kind, words: String) {
        let summary = waiting([UInt64](repeating: offset, count: 3), activity)
        #expect(summary == "All 3 busy threads of the pool are in startConnection, \(words).")
    }

    /// `others` wait for a lock, beside the threads in run loops.
    @Test(
        arguments: [
            (
                3, 0, .globalQueue, nil,
                "3 of 3 threads of the global queue run run loops, started in startConnection, and wait for events; no other is busy."
            ),
            (
                2, 1, .globalQueue, nil,
                "2 of 3 busy threads of the global queue run run loops, started in startConnection, and wait for events."
            ),
            (
                1, 0, .globalQueue, nil,
                "The one busy thread of the global queue runs a run loop, started in startConnection, and waits for events."
            ),
            (
                2, 0, .threadPool, 2,
                "2 of 2 threads of the pool run run loops, started in startConnection, and wait for events."
            ),
            (
                2, 0, .threadPool, 3,
                "2 of 2 threads of the pool, which has 3, run run loops, started in startConnection, and wait for events; no other is busy."
            ),
        ] as [(Int, Int, StallReport.LoopKind, Int?, String)])
    func `threads in run loops are counted`(
        loops: Int, others: Int, kind: StallReport.LoopKind, width: Int?, sentence: String
    ) {
        let offsets = [UInt64](repeating: 0x30, count: loops) + [UInt64](repeating: 0x70, count: others)
        #expect(waiting(offsets, .io, kind, width: width) == sentence)
    }

    /// Returns the sentence about workers that wait in functions with these offsets, called by `startConnection`.
    private func waiting(
        _ offsets: [UInt64], _ activity: Cause.Kind, _ kind: StallReport.LoopKind? = nil, width: Int? = nil
    ) -> String? {
        let builder = ReportBuilder.stub([
            "notes": [0x0100: "startConnection"],
            "libdispatch.so": [
                0x10: "_dispatch_worker_thread", 0x30: "CFRunLoopRunSpecific", 0x50: "dispatch_semaphore_wait",
                0x60: "dispatch_group_wait", 0x70: "pthread_mutex_lock",
            ],
        ])
        var sample = StallRecord.Sample(age: 250_000_000, isValid: true, stack: .failure(.pool), images: images)
        sample.workers = offsets.enumerated().map { index, offset in
            StallRecord.OtherThread(
                thread: ThreadIdentity(id: Int32(index + 1), name: nil),
                stack: .success(.stub([0x40000 + offset, 0x10100, 0x40010])), activity: activity)
        }
        var record = StallRecord.stub(kind: .starvation, samples: [sample])
        if let kind { record.loop.kind = kind }
        record.poolWidth = width
        return builder.report(of: record).cause?.summary
    }

    /// Each of libdispatch's global queues has threads of its own.
    @Test func `the threads of another global queue are not blamed`() {
        let names = ["oot.utility-qos", "oot.utility-qos", "oot.default-qos", "-qos.overcommit", "renamed"]
        var sample = StallRecord.Sample(age: 250_000_000, isValid: true, stack: .failure(.pool), images: images)
        sample.workers = names.enumerated().map { index, name in
            StallRecord.OtherThread(
                thread: ThreadIdentity(id: Int32(index + 1), name: name), stack: .success(.stub([0x10100, 0x40010])),
                activity: .sleep)
        }
        var record = StallRecord.stub(kind: .starvation, samples: [sample])
        (record.loop.kind, record.poolWorkers) = (.globalQueue, "oot.utility-qos")
        let report = builder.report(of: record)
        #expect(report.samples[0].workers?.flatMap { $0.threads.map(\.id) } == [1, 2, 5])
        #expect(report.cause?.summary == "All 3 busy threads of the pool are in blockTheHandler, sleeping.")
        record.poolWorkers = nil
        #expect(builder.report(of: record).samples[0].workers?.flatMap { $0.threads.map(\.id) } == [1, 2, 3, 4, 5])
    }

    @Test func aPoolWithoutBusyWorkersHasNoCause() {
        #expect(report([(0x40020, .sleep)]).cause == nil)
        #expect(report([(0x10100, nil)]).cause == nil)
    }
}

/// The groups of workers that explain why a pool starts no work.
@Suite struct WorkerGroupsTests {
    private let symbolicator = TableSymbolicator(symbols: [
        "libdispatch.so": [0x10: "_dispatch_worker_thread", 0x20: "_dispatch_semaphore_wait_slow"],
        "notes": [0x400: "_dispatch_worker_thread", 0x500: "_dispatch_semaphore_wait_slow"],
    ])

    /// Returns the groups of threads with these stacks: the stack and the number of threads of each.
    private func groups(_ stacks: [[UInt64]]) throws -> [[Int]] {
        var sample = StallRecord.Sample(
            age: 0, isValid: true, stack: .failure(.pool), images: images
        )
        sample.workers = stacks.enumerated().map { index, addresses in
            StallRecord.OtherThread(thread: .init(id: Int32(index + 1), name: nil), stack: .success(.stub(addresses)))
        }
        var tables = ReportTables(inApp: InAppSettings())
        let groups = try #require(
            WorkerGroups.group(sample, &tables) { WorkerGroups.symbol(of: $0, in: $1, symbolicator) })
        return groups.map { $0.threads.map { Int($0.id) } }
    }

    @Test(
        arguments: [
            // Workers with equal stacks are a group.
            ([[0x10100, 0x40010], [0x10200, 0x40010], [0x10200, 0x40010]], [[1], [2, 3]]),
            // Dispatch is linked into the executable; the third thread is no worker.
            (
                [[0x10500, 0x10400], [0x10500, 0x10400], [0x10100, 0x10300], [0x10100, 0x10400]],
                [[1, 2], [4]]
            ),
            // In a stripped executable the names of its functions are missing, and so are libdispatch's if it is linked
            // into it: without a known worker, threads with unnamed functions may be workers.
            ([[0x40020], [0x10100, 0x10300], [0x10100, 0x10300, 0x40020]], [[2], [3]]),
        ] as [([[UInt64]], [[Int]])])
    func `workers are grouped by their stacks`(stacks: [[UInt64]], expected: [[Int]]) throws {
        #expect(try groups(stacks) == expected)
    }
}
