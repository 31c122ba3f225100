import Foundation
import LinuxSupport
import StallReports
import TestSupport
import Testing

/// The tool shows the tasks of a program that keeps the truth about them.
@Suite struct TaskTests {
    /// The tasks as `stallwatch tasks --json` prints them.
    private struct Document: Decodable {
        struct Task: Decodable {
            var id: UInt64
            var name: String?
            var state: String
            var wait: String?
            var target: UInt64?
            var thread: Int32?
            var parent: UInt64?
            var group: UInt64?
        }
        struct Executor: Decodable { var thread: Int32? }
        var tasks: [Task]
        var executors: [Executor]
        var deadlocked: [UInt64]
        var incompleteReason: String?
    }

    private struct Edge {
        var name, state, wait, target: String
    }

    private let directory = TemporaryDirectory.ofTest()

    private func start(_ kind: String, _ count: Int = 0) throws -> (host: TestHost, edges: [Edge]) {
        let host = try TestHost(["tasks", directory.path, kind, "\(count)"])
        let lines = host.lines(until: "B")
        let edges = lines.map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
            .filter { $0.count == 5 }.map { Edge(name: $0[1], state: $0[2], wait: $0[3], target: $0[4]) }
        return (host, edges)
    }

    private func tasks(of host: TestHost) throws -> Document {
        try Tool.decode(Document.self, Tool.run(["tasks", "\(host.pid)", "--json"]))
    }

    /// Returns what a document says of a task, in the program's words.
    private static func edge(of task: Document.Task, in document: Document) -> Edge {
        func name(_ id: UInt64?) -> String {
            guard let id, let found = document.tasks.first(where: { $0.id == id }) else { return "?" }
            if let name = found.name { return name }
            return found.parent.flatMap { parent in document.tasks.first { $0.id == parent }?.name }
                .map { "child of \($0)" } ?? "?"
        }
        var target = ""
        switch task.wait {
        case "task": target = name(task.target)
        case "group":
            target = document.tasks.filter { $0.group == task.target && $0.parent == task.id }.compactMap(\.name)
                .sorted().joined(separator: ",")
        case "executor":
            let thread = task.target.flatMap { document.executors[Int($0)].thread }
            target = document.tasks.filter { $0.thread == thread }.compactMap(\.name).joined(separator: ",")
        default: break
        }
        return Edge(name: task.name ?? "", state: task.state, wait: task.wait ?? "", target: target)
    }

    /// Compares a document with the program's truth; returns the number of tasks that are right.
    ///
    /// A reading that was cut (`mayBeCut`) may lack what a task waits for.
    private func compare(_ document: Document, _ edges: [Edge], mayBeCut: Bool = false) -> Int {
        let named = Dictionary(document.tasks.map { ($0.name ?? "", $0) }) { first, _ in first }
        return edges.count { edge in
            guard let task = named[edge.name] else { return false }
            let found = Self.edge(of: task, in: document)
            let isRight = (found.state, found.wait, found.target) == (edge.state, edge.wait, edge.target)
            let lacksTarget = edge.target.split(separator: ",").contains { target in
                target.hasPrefix("child of ") ? found.target == "?" : named[String(target)] == nil
            }
            #expect(isRight || mayBeCut && lacksTarget, "\(edge) is shown as \(found)")
            return isRight
        }
    }

    @Test func `500 tasks are shown with what each waits for`() throws {
        let (host, edges) = try start("graph")
        #expect(edges.count == 500)
        #expect(compare(try tasks(of: host), edges) == 500)
        let text = try Tool.run(["tasks", "\(host.pid)"])
        #expect(text.contains("39 tasks in closure #1 in TaskHost.makeEnqueued()"), "\(text)")
        #expect(text.contains("await actor Cache, which runs sleepInHold()"), "\(text)")
        #expect(text.contains("await executor OwnThread, which runs sleepInHold()"), "\(text)")
        #expect(text.contains("await the main actor, which runs sleepInHold()"), "\(text)")
        #expect(try Tool.run(["tasks", "\(host.pid)", "--tree"]).contains("\n  task "))
        let stacks = try Tool.run(["stacks", "\(host.pid)"])
        #expect(stacks.contains(" Swift tasks: 3 running, 117 wait for a turn, 410 suspended"), "\(stacks)")
        let stuck = try Tool.run(["tasks", "\(host.pid)", "--stuck", "1", "--json"])
        #expect(compare(try Tool.decode(Document.self, stuck), edges) == 500)
    }

    @Test func `no edge is wrong while tasks come and go`() throws {
        let (host, edges) = try start("churn")
        let readings = rounds(10)
        var (seen, right) = (0, 0)
        for _ in 0..<readings {
            let document = try tasks(of: host)
            #expect(compare(document, edges) == 500)
            let byID = Dictionary(document.tasks.map { ($0.id, $0) }) { first, _ in first }
            for task in document.tasks {
                // "short 12", "after 12", "crowd 12" and "crowd 12 child"; children of `async let` have no name.
                let words = (task.name ?? "").split(separator: " ")
                guard words.count > 1, ["short", "after", "crowd"].contains(words[0]) else { continue }
                seen += 1
                #expect(words[0] != "short" || ![.some("task"), "group"].contains(task.wait), "\(task)")
                if let parent = task.parent.flatMap({ byID[$0] }) {
                    #expect(words.count == 3 && parent.name == "crowd \(words[1])", "\(task) \(parent)")
                    right += 1
                }
                if task.wait == "task", let target = task.target.flatMap({ byID[$0] }) {
                    let isChild = target.name == nil && target.parent == task.id
                    #expect(words.count == 2 && isChild || target.name == "short \(words[1])", "\(task) \(target)")
                    right += 1
                }
                if task.wait == "group" {
                    let children = document.tasks.filter { $0.group == task.target }
                    #expect(
                        children.allSatisfy { $0.name == "crowd \(words[1]) child" && $0.parent == task.id }, "\(task)")
                    right += children.count
                }
            }
        }
        print("tasks: \(seen) short ones and \(right) of their edges in \(readings) readings")
        #expect(right > readings)
        #expect(host.process.isRunning)
    }

    @Test func `damaged memory hides no task and ends no process`() throws {
        let (host, edges) = try start("damaged")
        for _ in 0..<rounds(2) {
            let begin = ContinuousClock.now
            let document = try tasks(of: host)
            // Beside other work the five seconds of a reading may end first.
            let mayBeCut = ContinuousClock.now - begin >= .seconds(5)
            #expect(compare(document, edges, mayBeCut: mayBeCut) == 500 || mayBeCut)
            #expect(document.incompleteReason != nil)
        }
        #expect(host.process.isRunning)
    }

    @Test func `tasks that await each other are a deadlock`() throws {
        let (host, edges) = try start("circle")
        let document = try tasks(of: host)
        #expect(compare(document, edges) == 2)
        #expect(document.deadlocked.count == 2)
        let id = try #require(document.deadlocked.first)
        #expect(try Tool.run(["tasks", "\(host.pid)", "--task", "\(id)"]).contains("a deadlock"))
    }

    @Test func `a process without tasks is one sentence`() throws {
        let (host, _) = try start("none")
        let none = try Tool.shell("$TOOL tasks \(host.pid)")
        #expect(none.status == 1 && none.text.contains("has no Swift task."), "\(none)")
    }

    /// A gigabyte of memory, and other memory that comes and goes while it is searched.
    @Test func `memory that is unmapped does not matter`() throws {
        let (host, _) = try start("large", 1_000)
        let readings = try (0..<5).map { _ in try tasks(of: host) }
        // Beside other work the time of a reading may end first.
        let whole = readings.filter { $0.incompleteReason == nil }
        if whole.isEmpty { notRun("\(readings.last?.incompleteReason ?? "")") }
        #expect(whole.allSatisfy { document in document.tasks.count { $0.wait == "continuation" } == 1_000 })
    }
}
