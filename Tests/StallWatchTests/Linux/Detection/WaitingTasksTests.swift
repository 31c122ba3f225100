import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct WaitingTasksTests {
    private static let executors: [TaskList.Executor] = [
        .init(kind: .actor, address: "0x1"), .init(kind: .actor, address: "0x2", thread: 9),
        .init(kind: .mainActor, address: "0x3", thread: 1),
    ]
    private static let list = TaskList(
        tasks: [
            .init(id: 1, name: "secret", state: .enqueued, wait: .pool, parent: 2, stack: 1),
            .init(id: 2, state: .suspended, wait: .group, target: 0),
            .init(id: 3, state: .enqueued, wait: .executor, target: 0, stack: 0),
            .init(id: 4, state: .enqueued, wait: .executor, target: 1, stack: 0),
            .init(id: 5, state: .enqueued, wait: .executor, target: 2, stack: 1),
            .init(id: 6, state: .running, thread: 1), .init(id: 7, state: .enqueued, wait: .executor),
            .init(id: 8, state: .enqueued, wait: .executor, target: 2, stack: 1),
            .init(id: 9, name: "stallwatch heartbeat", state: .enqueued, wait: .pool, stack: 0),
        ], executors: executors)

    @Test func `only tasks that wait for a turn there are kept, without their names`() {
        var pool = Self.list
        pool.keepEnqueued { $0.map { $0.thread == nil } ?? true }
        #expect(pool.tasks.map(\.id) == [1, 3])
        #expect(pool.tasks[0].name == nil && pool.tasks[0].parent == nil)
        var main = Self.list
        main.keepEnqueued { $0?.thread == 1 }
        #expect(main.tasks.map(\.id) == [5])
        #expect(main.tasks[0].count == 2)
    }

    @Test func `a list counts if it was read before the stall had ended`() throws {
        let waiting = WaitingTasks(began: 1_000)
        var stored: [[UInt64]] = []
        func list(after duration: UInt64?) -> TaskList? {
            waiting.list(after: duration) { stack in
                stored.append(stack.frames.map(\.address))
                return 10 + stored.count
            }
        }
        #expect(list(after: nil) == nil)
        waiting.set(Self.list, [.stub([0x1000]), .stub([0x2000])], at: 1_500)
        #expect(list(after: 499) == nil)
        let found = try #require(list(after: 500))
        #expect(found.tasks.map(\.stack) == [11, nil, 12, 12, 11, nil, nil, 11, 12])
        #expect(stored == [[0x2000], [0x1000]])
        #expect(list(after: nil)?.tasks.count == 9)
    }

    @Test func `a report without the stacks of its tasks has none`() throws {
        var report = try StallReport.literal()
        report.tasks = TaskList(tasks: [.init(id: 1, state: .enqueued, wait: .pool, stack: 0)])
        #expect(report.redact { $0.metadata = [:] } == nil)
        #expect(report.tasks?.tasks.count == 1)
        let fault = report.redact { report in
            (report.stacks, report.samples, report.otherThreads, report.cause) = ([], [], nil, nil)
        }
        #expect(fault == nil)
        #expect(report.tasks == nil)
        // Without a stack, a task still tells its actor.
        let names = TaskList(
            tasks: [.init(id: 1, state: .enqueued, wait: .executor, target: 0), .init(id: 2, state: .suspended)],
            executors: [.init(kind: .actor, name: "Secret", address: "0x1")])
        report = try StallReport.literal()
        report.tasks = names
        let second = report.redact { report in
            (report.stacks, report.samples, report.otherThreads, report.cause) = ([], [], nil, nil)
        }
        #expect(second == nil)
        #expect(report.tasks == nil)
        report.tasks = names
        report.tasks?.tasks[0].count = 7
        #expect(report.redact { if $0.taskCount == 8 { $0.removeTasks() } } == nil)
        #expect(report.tasks == nil && report.taskCount == 0)
        report.tasks = TaskList(tasks: [.init(id: 1, state: .enqueued, wait: .pool, stack: 5)])
        #expect(report.fault == "tasks: task 1 has the stack 5, but there are 0 stacks")
    }
}
