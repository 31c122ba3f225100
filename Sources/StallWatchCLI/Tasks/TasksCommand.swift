import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct TasksCommand: ParsableCommand {
    /// The longest time between the two readings of `--stuck`, in seconds.
    static let longestStuck = 300

    static let configuration = CommandConfiguration(
        commandName: "tasks",
        abstract: "Show the Swift tasks of a live process, and what each waits for.",
        usage: "stallwatch tasks [<process>] [<options>]",
        discussion: """
            The process's configuration has to set control = .socket(directory:). Its monitor reads the tasks in its memory: \
            no thread is stopped or held. A line stands for all tasks in the same function that wait for the same. \
            What cannot be proven is not shown as known; a task that was just changing is left out. With --stuck the tool \
            reads twice, and shows the tasks that have the same place and the same wait in both: they have not moved, or \
            have come back. The tool has to run as the process's user or as root.

            Examples:
              stallwatch tasks notes
              stallwatch tasks 4700 --stuck 10
              stallwatch tasks 4700 --task 318 --json
            """
    )

    @OptionGroup var arguments: LiveArguments

    @Flag(help: "Show each task below the one that waits for it.")
    var tree = false

    @Option(help: ArgumentHelp("Show only the task with this id, and what it waits for.", valueName: "id"))
    var task: UInt64?

    @Option(
        help: ArgumentHelp(
            "Read twice, this far apart, and show only the tasks that have not moved: 1 to \(longestStuck).",
            valueName: "seconds"))
    var stuck: Int?

    func validate() throws {
        if let stuck, !(1...Self.longestStuck).contains(stuck) {
            throw ValidationError("\(stuck) is no time between two readings: give 1 to \(Self.longestStuck) seconds.")
        }
        if tree, task != nil { throw ValidationError("Give only one of --tree and --task.") }
    }

    func run() throws {
        let client = ControlClient(pid: try arguments.pid())
        var graph = try readTasks(client)
        var standings: [UInt64: TaskGraph.Standing]?
        if let stuck {
            standings = Dictionary(graph.list.tasks.map { ($0.id, graph.standing(of: $0)) }) { first, _ in first }
            sleep(UInt32(stuck))
            graph = try readTasks(client)
        }
        let text = TasksText(graph) { task in standings.map { $0[task.id] == graph.standing(of: task) } ?? true }
        guard !text.tasks.isEmpty else {
            let sentence =
                stuck.map { "No task of process \(client.pid) was in the same place \($0) s later." }
                ?? "Process \(client.pid) has no Swift task."
            throw CommandFailure(.nothing, sentence)
        }
        if let task, !text.tasks.contains(where: { $0.id == task }) {
            throw CommandFailure(.nothing, "Process \(client.pid) has no such task \(task) now.")
        }
        try arguments.output.write(text.document(task: task), isLast: true) { terminal in
            if let task { return text.chain(from: task) }
            return (tree ? text.trees : text.groups(for: terminal)) + text.note
        }
    }

    private func readTasks(_ client: ControlClient) throws(CommandFailure) -> TaskGraph {
        let answer = try client.answer(to: .tasks)
        guard let list = answer.tasks, let report = answer.report else { throw client.noAnswer }
        return TaskGraph(list, report)
    }
}

struct TasksText {
    private static let maximumTree = 2_000

    private let graph: TaskGraph
    let tasks: [TaskList.Task]
    private let ids: Set<UInt64>

    init(_ graph: TaskGraph, where isShown: (TaskList.Task) -> Bool = { _ in true }) {
        self.graph = graph
        tasks = graph.list.tasks.filter(isShown)
        ids = Set(tasks.map(\.id))
    }

    func groups(for terminal: Terminal) -> String {
        graph.groups { ids.contains($0.id) }.map { group in
            let number = group.tasks.count == 1 ? "  (task \(group.tasks[0]))" : ""
            return group.sentence.printable + terminal.style(number, .faint) + "\n"
        }.joined()
    }

    var trees: String {
        var left = Self.maximumTree
        var text = ""
        var written: Set<UInt64> = []
        for root in graph.roots where left > 0 {
            // With --stuck, a task that has not moved may be below one that has: its own tree begins there.
            for (_, task) in graph.chain(from: root, limit: Self.maximumTree)
            where left > 0 && ids.contains(task.id) && (task.id == root || !written.contains(task.id)) {
                let chain = graph.chain(from: task.id, limit: left)
                left -= chain.count
                text += lines(chain)
                written.formUnion(chain.map(\.task.id))
            }
        }
        return text + (left > 0 ? "" : "… only the first \(Self.maximumTree) lines: --task shows one task.\n")
    }

    func chain(from id: UInt64) -> String {
        guard let task = graph.task(id) else { return "" }
        let functions = graph.functions(of: task).map { "    \($0.printable)\n" }.joined()
        let chain = graph.chain(from: id, limit: Self.maximumTree)
        return lines(Array(chain.prefix(1))) + functions + lines(Array(chain.dropFirst()))
    }

    private func lines(_ chain: [(depth: Int, task: TaskList.Task)]) -> String {
        chain.map { depth, task in
            let name = task.name.map { " \"\($0)\"" } ?? ""
            let canceled = task.isCanceled == true ? ", canceled," : ""
            let words = "task \(task.id)\(name) in \(graph.place(of: task))\(canceled) \(graph.step(of: task))"
            return String(repeating: "  ", count: min(depth, 20)) + words.printable + "\n"
        }.joined()
    }

    var note: String {
        graph.list.incompleteReason.map { "There may be more tasks: \($0.printable).\n" } ?? ""
    }

    struct Document: Encodable {
        struct Task: Encodable {
            var id: UInt64
            var name: String?
            var state: TaskList.TaskState
            var wait: TaskList.Wait?
            var target: UInt64?
            var thread: Int32?
            var parent: UInt64?
            var group: UInt64?
            var isCanceled: Bool?
            var function: String?
            var file: String?
            var line: Int?
            var sentence: String
        }
        var groups: [TaskGraph.Group]
        var tasks: [Task]
        var executors: [TaskList.Executor]
        var deadlocked: [UInt64]
        var searchedBytes: UInt64
        var readMilliseconds: Double
        var incompleteReason: String?
    }

    /// The tasks for JSON; only one and those that it waits for, if `task` is not `nil`.
    func document(task: UInt64?) -> Document {
        let chosen = task.map { Set(graph.chain(from: $0, limit: Self.maximumTree).map(\.task.id)) }
        let shown = graph.list.tasks.filter { chosen?.contains($0.id) ?? ids.contains($0.id) }
        let shownIDs = Set(shown.map(\.id))
        return Document(
            groups: graph.groups { shownIDs.contains($0.id) },
            tasks: shown.map { task in
                let frame = graph.frame(of: task)
                return Document.Task(
                    id: task.id, name: task.name, state: task.state, wait: task.wait, target: task.target,
                    thread: task.thread, parent: task.parent, group: task.group, isCanceled: task.isCanceled,
                    function: frame?.function, file: frame?.file, line: frame?.line, sentence: graph.wait(of: task))
            },
            executors: graph.list.executors, deadlocked: graph.deadlocked.intersection(shownIDs).sorted(),
            searchedBytes: graph.list.searchedBytes, readMilliseconds: graph.list.readMilliseconds,
            incompleteReason: graph.list.incompleteReason)
    }
}
