import TestSupport
import Testing

@testable import StallReports

@Suite struct HangTextTests {
    private func thread(
        _ id: Int32, _ name: String? = nil, functions: [String] = [], lock: StallReport.Lock? = nil,
        _ report: inout StallReport
    ) -> StallReport.OtherThread {
        let first = report.frames.count
        report.frames += functions.map {
            StallReport.Frame(
                offset: "0x1", function: $0, file: "/app/Notes.swift", line: 7, isInApp: true, kind: .code)
        }
        report.stacks.append(Array(first..<report.frames.count))
        return StallReport.OtherThread(
            thread: StallReport.ThreadDescription(id: id, name: name), stack: report.stacks.count - 1,
            threadState: .blocked, heldMicroseconds: 0, lock: lock)
    }

    private func mutex(ownedBy owner: Int32, isDeadlock: Bool = false) -> StallReport.Lock {
        let owner = StallReport.LockOwner(thread: StallReport.ThreadDescription(id: owner, name: nil), isRunning: false)
        return StallReport.Lock(
            kind: .pthreadMutex, function: "pthread_mutex_lock", isDeadlock: isDeadlock, owners: [owner])
    }

    /// A report whose main thread is in no code of the app.
    private func idle() throws -> StallReport {
        var report = try StallReport.literal()
        report.stacks.append([])
        report.samples = [report.samples[0]]
        report.samples[0].stack = report.stacks.count - 1
        report.cause = nil
        return report
    }

    @Test func `deadlocked threads come first, with the app's functions`() throws {
        var report = try idle()
        report.otherThreads = [
            thread(1, functions: ["busy()"], &report),
            thread(2, functions: ["first()", "test()"], lock: mutex(ownedBy: 3, isDeadlock: true), &report),
            thread(3, lock: mutex(ownedBy: 2, isDeadlock: true), &report),
        ]
        #expect(
            HangText(report).lines == [
                "thread 2 is in a deadlock: waits in pthread_mutex_lock for the mutex, which thread 3 holds",
                "    first()  /app/Notes.swift:7", "    test()  /app/Notes.swift:7",
                "thread 3 is in a deadlock: waits in pthread_mutex_lock for the mutex, which thread 2 holds",
                "thread 1 waits", "    busy()  /app/Notes.swift:7",
                "in no code of the app: thread 4700 \"notes\"",
            ])
    }

    @Test func `a thread of a program named like the monitor's threads is shown`() throws {
        var report = try idle()
        report.loop.thread?.name = "stallwatch-app"
        report.otherThreads = [thread(2, "stallwatch-app", functions: ["busy()"], &report)]
        #expect(
            HangText(report).lines == [
                "thread 2 \"stallwatch-app\" waits", "    busy()  /app/Notes.swift:7",
                "in no code of the app: thread 4700 \"stallwatch-app\"",
            ])
    }

    @Test func `only the outermost functions start the program`() throws {
        var report = try idle()
        report.otherThreads = [thread(2, functions: ["render_main", "loop()", "Notes_main", "main"], &report)]
        for index in report.frames.indices { report.frames[index].symbol = report.frames[index].function }
        #expect(
            HangText(report).lines == [
                "thread 2 waits", "    render_main  /app/Notes.swift:7", "    loop()  /app/Notes.swift:7",
                "in no code of the app: thread 4700 \"notes\"",
            ])
    }

    @Test func `a program in which nothing runs waits for an event`() throws {
        var report = try idle()
        // The code that the linker adds counts as a dependency's, as it lies elsewhere than the app's.
        var start = StallReport.Frame(offset: "0x1", function: "_start", isInApp: false, kind: .code)
        start.isDependency = true
        report.frames.append(start)
        report.stacks[report.stacks.count - 1] = [report.frames.count - 1]
        report.otherThreads = [thread(1, functions: [], &report), .init(thread: .init(id: 2))]
        report.otherThreads?[1].reason = "the thread has ended"
        let lines = HangText(report).lines
        #expect(lines.first == "in no code of the app: thread 4700 \"notes\", thread 1")
        #expect(lines.last?.contains("a continuation that was never resumed") == true)
    }

    @Test func `a thread without a whole stack may be in the app's code`() throws {
        var report = try idle()
        report.samples = []
        var cut = thread(8, functions: [], &report)
        cut.reason = "cut short"
        report.otherThreads = [.init(thread: .init(id: 7), reason: "refused"), cut]
        let lines = HangText(report).lines
        #expect(
            lines.first
                == "not captured, or not to the end: thread 4700 \"notes\", thread 7 (refused), thread 8 (cut short)")
        #expect(!lines.contains { $0.contains("nothing to do") || $0.contains("in no code") })
    }

    @Test func `a thread that waits for a lock without a known owner has something to do`() throws {
        var report = try idle()
        report.otherThreads = [
            thread(1, lock: .init(kind: .dispatchSemaphore, isDeadlock: false, owners: []), &report)
        ]
        #expect(!HangText(report).lines.contains { $0.contains("nothing to do") })
        report.otherThreads = [thread(1, functions: [], &report)]
        #expect(HangText(report).lines.contains { $0.contains("nothing to do") })
        report.otherThreads?[0].threadState = .running
        #expect(!HangText(report).lines.contains { $0.contains("nothing to do") })
    }

    @Test func `the main thread has the report's stack and lock`() throws {
        var report = try StallReport.literal()
        report.cause = StallReport.Cause(
            kind: .lock, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0, blockedMilliseconds: 1,
            uncertaintyMilliseconds: 0, lock: mutex(ownedBy: 3))
        let lines = HangText(report).lines
        #expect(lines.first == "thread 4700 \"notes\" waits in pthread_mutex_lock for the mutex, which thread 3 holds")
        #expect(lines.dropFirst().first == "    NoteStore.save(_:)")
    }

    @Test func `a deep stack is cut short`() throws {
        var report = try idle()
        report.otherThreads = [thread(1, functions: (1...9).map { "f\($0)()" }, &report)]
        #expect(HangText(report).lines.filter { $0.hasPrefix("    ") }.count == 7)
        #expect(HangText(report).lines.contains("    … 3 more"))
    }

    @Test func `tasks in the app's code are said to wait, once with what they wait for`() throws {
        var report = try idle()
        let functions = ["load()", "test()", "main"].map { thread(1, functions: [$0], &report).stack }
        func task(_ id: UInt64, _ wait: TaskList.Wait, _ target: UInt64? = nil, _ function: Int? = nil) -> TaskList.Task
        {
            .init(id: id, state: .suspended, wait: wait, target: target, stack: function.flatMap { functions[$0] })
        }
        report.tasks = TaskList(tasks: [
            task(1, .task, 2, 2), task(2, .task, 3, 1), task(3, .continuation, nil, 0), task(4, .sleep),
            task(5, .task, 6, 0), task(6, .task, 5, 0),
        ])
        let lines = HangText(report).lines
        #expect(
            lines.suffix(2) == [
                "2 tasks in load() at Notes.swift:7 await a task that waits for this one: a deadlock",
                "1 task in test() at Notes.swift:7 awaits a task in load() at Notes.swift:7, which awaits a continuation",
            ], "\(lines)")
        #expect(!lines.contains { $0.contains("never resumed") })
    }

    @Test func `threads that were not captured are counted`() throws {
        var report = try idle()
        report.omittedThreads = 12
        #expect(HangText(report).lines.contains("not captured, because there are too many: 12"))
    }
}
