import TestSupport
import Testing

@testable import StallReports
@testable import StallWatchCLI

@Suite struct TasksTextTests {
    private static func text(_ isShown: (TaskList.Task) -> Bool = { _ in true }) throws -> TasksText {
        var report = try StallReport(jsonData: ReportFixture().bytes)
        report.frames = [.init(offset: "0x1", function: "load()", isInApp: true, kind: .asyncCaller)]
        report.stacks = [[0]]
        let tasks: [TaskList.Task] = [
            .init(id: 1, state: .suspended, wait: .group, target: 5, stack: 0),
            .init(id: 2, state: .suspended, wait: .task, target: 3, group: 5, stack: 0),
            .init(id: 3, state: .suspended, wait: .continuation, stack: 0),
        ]
        return TasksText(TaskGraph(TaskList(tasks: tasks), report), where: isShown)
    }

    /// The numbers of the tasks at the beginnings of lines, with their indentation.
    private static func numbers(_ trees: String) -> [String] {
        trees.split(separator: "\n").map { line in String(line.split(separator: " in ", maxSplits: 1)[0]) }
    }

    @Test func `a tree begins at the task that no other waits for`() throws {
        #expect(Self.numbers(try Self.text().trees) == ["task 1", "  task 2", "    task 3"])
    }

    /// A task that waits for its group moves whenever one of the others ends.
    @Test func `a task that has not moved is shown, also below one that has`() throws {
        #expect(Self.numbers(try Self.text { $0.id != 1 }.trees) == ["task 2", "  task 3"])
        #expect(Self.numbers(try Self.text { $0.id == 3 }.trees) == ["task 3"])
    }
}
