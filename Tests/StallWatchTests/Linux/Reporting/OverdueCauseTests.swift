import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

private let images = ImageList([
    .stub(path: "/opt/notes/bin/notes", addresses: 0x10000..<0x20000, isExecutable: true)
])

@Suite struct OverdueCauseTests {
    private let builder = ReportBuilder.stub([
        "notes": [0x0100: "awaitTheServices", 0x0200: "listen", 0x0300: "sweep"]
    ])

    /// Returns the report of an operation of task 1, which awaits child tasks that have these stacks.
    private func report(_ children: [Int?], canceled: Int? = nil, state: StallState = .ongoing) -> StallReport {
        var tasks = [TaskList.Task(id: 1, state: .suspended, wait: .group, target: 7, stack: 0)]
        for (index, stack) in children.enumerated() {
            var child = TaskList.Task(
                id: UInt64(index + 2), state: .suspended, wait: .continuation, group: 7, stack: stack)
            if index == canceled { child.isCanceled = true }
            tasks.append(child)
        }
        var record = StallRecord.stub(id: "01a2242b-28ca-70fe-ab71-c5ed75cb1f79", kind: .overdue, state: state)
        record.operation = OverdueOperation(
            1, in: TaskList(tasks: tasks), [.stub([0x10100]), .stub([0x10200]), .stub([0x10300])], images)
        return builder.report(of: record)
    }

    @Test func `child tasks are counted by function`() {
        let report = report([2, 1, 1, nil])
        #expect(
            report.cause?.summary
                == "awaitTheServices awaits 4 child tasks (2 in listen, 1 in sweep, 1 more), one of them in "
                + "sweep, which awaits a continuation, which nothing has resumed yet.")
        #expect(report.waits?.map { $0.childStacks?.count } == [3, nil])
        #expect(report.fault == nil)
    }

    @Test func `the child that was asked to end is said to be`() {
        #expect(
            report([2, 1], canceled: 1).cause?.summary.contains("one that was asked to end in listen, which") == true)
    }

    @Test func `one child needs no number`() {
        #expect(
            report([1]).cause?.summary
                == "awaitTheServices awaits a child task in listen, which awaits a continuation, which nothing has "
                + "resumed yet.")
        #expect(
            report([1], state: .ended).cause?.summary.hasSuffix(
                "which awaits a continuation, which nothing had resumed when it was read.") == true)
    }

    @Test func `each of very many children is counted`() {
        let report = report(Array(repeating: 1, count: 1_500))
        #expect(report.cause?.summary.contains("1500 child tasks (101 in listen, 1399 more), one of them") == true)
    }

    @Test func `a task that no reading has may run another one`() {
        var record = StallRecord.stub(id: "01a2242b-28ca-70fe-ab71-c5ed75cb1f79", kind: .overdue, state: .ongoing)
        record.operation = OverdueOperation(reason: OperationInspector.noReading)
        #expect(
            builder.report(of: record).cause?.summary
                == "What it waits for is not known: its task changed during each reading, or runs another one inside "
                + "of it.")
    }

    /// A child task awaits the end of its parent, alone or beside another one.
    @Test(
        arguments: [
            (1, "a child task in listen"), (2, "2 child tasks (2 in listen), one of them in listen"),
        ])
    func `a circle through a group is named once`(children: Int, awaited: String) {
        var tasks = [TaskList.Task(id: 1, state: .suspended, wait: .group, target: 7, stack: 0)]
        for id in 2..<UInt64(children + 2) {
            tasks.append(TaskList.Task(id: id, state: .suspended, wait: .task, target: 1, group: 7, stack: 1))
        }
        var record = StallRecord.stub(id: "01a2242b-28ca-70fe-ab71-c5ed75cb1f79", kind: .overdue, state: .ongoing)
        record.operation = OverdueOperation(
            1, in: TaskList(tasks: tasks), [.stub([0x10100]), .stub([0x10200])], images)
        #expect(
            builder.report(of: record).cause?.summary
                == "awaitTheServices awaits \(awaited), which awaits a task in awaitTheServices, which waits for this "
                + "one; it is not known whether another child task ends the wait.")
    }

    @Test func `the stacks of a hundred children are kept`() {
        let report = report(Array(repeating: 1, count: 300))
        #expect(report.cause?.summary.contains("300 child tasks (101 in listen, 199 more), one of them") == true)
        #expect(report.stacks.count == 2)
    }
}
