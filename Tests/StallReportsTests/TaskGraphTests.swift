import Foundation
import TestSupport
import Testing

@testable import StallReports

@Suite struct TaskGraphTests {
    /// Functions with one frame each: the stack with the same index.
    private static let functions = ["load()", "save()", "import()", "Task.sleep"]

    private static func report() throws -> StallReport {
        var report = try StallReport.literal()
        report.frames = functions.enumerated().map { index, name in
            .init(
                offset: "0x\(index + 1)", function: name, file: index < 3 ? "/src/Loader.swift" : nil,
                line: index < 3 ? 10 * (index + 1) : nil, isInApp: index < 3, kind: .asyncCaller)
        }
        report.stacks = [[0], [1], [2], [3, 0]]
        report.otherThreads = [
            .init(
                thread: .init(id: 91, name: "worker"), stack: 2, threadState: .blocked, heldMicroseconds: 0,
                systemCall: .init(number: 0, name: "read", target: "data.bin")),
            .init(thread: .init(id: 92), threadState: .running, heldMicroseconds: 0),
        ]
        return report
    }

    private static func graph(_ tasks: [TaskList.Task], _ executors: [TaskList.Executor] = []) throws -> TaskGraph {
        let list = TaskList(tasks: tasks, executors: executors)
        #expect(list.fault(stacks: 4) == nil)
        return TaskGraph(list, try report())
    }

    private static func waiting(_ id: UInt64, _ wait: TaskList.Wait, _ target: UInt64? = nil, stack: Int? = 0)
        -> TaskList.Task
    {
        let state: TaskList.TaskState = wait == .executor || wait == .pool ? .enqueued : .suspended
        return TaskList.Task(id: id, state: state, wait: wait, target: target, stack: stack)
    }

    private static func sentences(_ graph: TaskGraph) -> [String] { graph.groups().map(\.sentence) }

    @Test func `equal tasks are one line, with the end of the chain`() throws {
        let holder = TaskList.Task(id: 9, state: .running, thread: 91)
        let graph = try Self.graph(
            [Self.waiting(1, .executor, 0), Self.waiting(2, .executor, 0), holder],
            [.init(kind: .actor, name: "Cache", address: "0x10", thread: 91)])
        #expect(
            Self.sentences(graph) == [
                "2 tasks in load() at Loader.swift:10 await actor Cache, which runs import() at Loader.swift:30 on "
                    + "thread 91 \"worker\", which waits in read(data.bin)",
                "1 task in import() at Loader.swift:30 runs on thread 91 \"worker\", which waits in read(data.bin)",
            ])
        #expect(graph.groups()[0].tasks == [1, 2])
    }

    @Test(
        arguments: [
            (.continuation, nil, "awaits a continuation"), (.sleep, nil, "sleeps"), (.pool, nil, "waits for a thread"),
            (.task, 7, "awaits a task that was not read"), (.task, nil, "awaits a task that was not read"),
            (.task, 2, "awaits a task in save() at Loader.swift:20, which sleeps"),
            (.group, 5, "awaits a child task in import() at Loader.swift:30, which waits for a thread"),
            (.group, 6, "awaits a child task that was not read"),
            (.executor, nil, "awaits an executor that is not known"),
            (.executor, 0, "awaits the main actor on thread 92, which is on a CPU or ready to run"),
            (.executor, 1, "awaits executor Loop, which no thread is known to run"),
            (.executor, 2, "awaits a thread of task executor Workers"),
        ] as [(TaskList.Wait, UInt64?, String)])
    func `each wait has its words`(wait: TaskList.Wait, target: UInt64?, words: String) throws {
        var child = Self.waiting(3, .pool, stack: 2)
        child.group = 5
        let graph = try Self.graph(
            [Self.waiting(1, wait, target), Self.waiting(2, .sleep, stack: 1), child],
            [
                .init(kind: .mainActor, address: "0x20", thread: 92),
                .init(kind: .custom, name: "Loop", address: "0x30"),
                .init(kind: .task, name: "Workers", address: "0x40"),
            ])
        #expect(graph.task(1).map { graph.wait(of: $0) } == words)
    }

    @Test func `of several child tasks the functions are counted`() throws {
        let stacks = [0, 0, 1, 1, 1, 2, nil, nil]
        var children = stacks.enumerated().map { Self.waiting(UInt64($0 + 2), .sleep, stack: $1) }
        for index in children.indices { children[index].group = 5 }
        let graph = try Self.graph([Self.waiting(1, .group, 5)] + children)
        let words = "awaits 8 child tasks (3 in save(), 2 in load(), 1 in import(), 2 more)"
        let task = try #require(graph.task(1))
        #expect(graph.wait(of: task) == "\(words), one of them in load() at Loader.swift:10, which sleeps")
        #expect(graph.step(of: task) == words)
    }

    @Test(
        arguments: [
            (["withCheckedContinuation<A>(isolation:function:_:)", "load()"], 1_234_000_000, "1234 MB"),
            (["withCheckedThrowingContinuation<A>(isolation:function:_:)", "load()"], 499_999, "499 kB"),
            (["specialized withCheckedContinuation<A>(isolation:function:_:)", "load()"], 500_000, "1 MB"),
            (["withCheckedContinuation<A>()"], .max, "18446744073710 MB"),
            (["load()", "withCheckedContinuation<A>(isolation:function:_:)"], 1, nil),
            (["withCheckedOutConnection(_:)", "load()"], 1, nil),
            (["load()"], 1, nil),
        ] as [([String], UInt64, String?)])
    func `only a checked continuation is likely never resumed`(
        functions: [String], bytes: UInt64, searched: String?
    ) throws {
        var task = Self.waiting(1, .continuation)
        task.searchedInVain = bytes
        var report = try Self.report()
        report.frames = functions.map { name in
            .init(offset: "0x1", function: name, isInApp: name == "load()", kind: .asyncCaller)
        }
        report.stacks = [Array(functions.indices)]
        let graph = TaskGraph(TaskList(tasks: [task]), report)
        let lost = searched.map {
            " that is likely never resumed: nothing in the \($0) of memory that were searched holds it"
        }
        #expect(graph.task(1).map { graph.wait(of: $0) } == "awaits a continuation\(lost ?? "")")
    }

    @Test func `a task that reads a stream waits for its next element`() throws {
        func wait(_ functions: [String]) throws -> String? {
            var report = try Self.report()
            report.frames = functions.map { name in
                .init(offset: "0x1", function: name, isInApp: name == "load()", kind: .asyncCaller)
            }
            report.stacks = [Array(functions.indices)]
            let graph = TaskGraph(TaskList(tasks: [Self.waiting(1, .continuation)]), report)
            return graph.task(1).map { graph.wait(of: $0) }
        }
        let next = ["withUnsafeContinuation<A>(isolation:_:)", "AsyncStream.Iterator.next(isolation:)"]
        #expect(try wait(next + ["load()"]) == "waits for the next element of a stream")
        #expect(try wait(["load()"] + next) == "awaits a continuation", "load() is called by it")
    }

    @Test func `a long name without a file is left out of a chain`() throws {
        var report = try Self.report()
        let name = "closure #2 in closure #8 in variable initialization expression of static App.tasks"
        report.frames[1] = .init(offset: "0x2", function: name, isInApp: true, kind: .asyncCaller)
        let graph = TaskGraph(TaskList(tasks: [Self.waiting(1, .task, 2), Self.waiting(2, .pool, stack: 1)]), report)
        #expect(graph.task(1).map { graph.wait(of: $0) } == "awaits a task, which waits for a thread")
    }

    /// The mangled name is the standard library's; an app's function may have that name inside its own.
    @Test(
        arguments: [
            ("$ss23withCheckedContinuation9isolation8function_xScA_pSgYi_SSyScCyxs5NeverOGXEtYalFTY0_", nil, true),
            (
                "$ss31withCheckedThrowingContinuation9isolation8function_xScA_pSgYi_SSyScCyxs5Error_pGXEtYaKlFyt_Tg5",
                nil, true
            ),
            ("$s4main32withCheckedContinuationOrTimeout7secondsySd_tYaFTY0_", nil, false),
            ("$s4main23withCheckedContinuationyyYaFTY0_", "withCheckedContinuation<A>()", false),
            (nil, "withCheckedContinuationOrTimeout(seconds:)", false),
        ] as [(String?, String?, Bool)])
    func `a checked continuation is known by its mangled name`(symbol: String?, name: String?, isLost: Bool) throws {
        var task = Self.waiting(1, .continuation)
        task.searchedInVain = 1
        var report = try Self.report()
        report.frames = [
            .init(
                offset: "0x1", function: name ?? "withCheckedContinuation<A>(isolation:function:_:)", symbol: symbol,
                isInApp: false, kind: .asyncCaller)
        ]
        report.stacks = [[0]]
        #expect((TaskGraph(TaskList(tasks: [task]), report).bytesWithoutContinuation(of: task) != nil) == isLost)
    }

    @Test func `tasks that await each other are a deadlock, and those before them are not in it`() throws {
        let graph = try Self.graph(
            [
                Self.waiting(1, .task, 2), Self.waiting(2, .task, 3), Self.waiting(3, .task, 2),
                Self.waiting(4, .task, 4),
            ])
        #expect(graph.deadlocked == [2, 3, 4])
        #expect(graph.task(1).map { graph.wait(of: $0).hasSuffix(": a deadlock") } == true)
        #expect(graph.roots == [1, 2, 4])
        #expect(graph.chain(from: 1, limit: 9).map(\.task.id) == [1, 2, 3])
    }

    @Test func `a long chain and a circle of groups end at the limit`() throws {
        let long = try Self.graph((1...1_000).map { Self.waiting($0, .task, $0 + 1) })
        #expect(long.task(1).map { long.wait(of: $0).hasSuffix("which waits for more") } == true)
        #expect(long.roots == [1])
        #expect(long.chain(from: 1, limit: 50).count == 50)
        // A parent that waits for a child that waits for its parent: damaged, or a deadlock that cannot be proven.
        var child = Self.waiting(2, .task, 1)
        child.group = 8
        let circle = try Self.graph([Self.waiting(1, .group, 8), child])
        #expect(circle.deadlocked.isEmpty)
        #expect(
            circle.task(1).map { circle.wait(of: $0) }
                == "awaits a child task in load() at Loader.swift:10, which awaits a task in load() at Loader.swift:10"
                + TaskGraph.circleEnd)
        #expect(circle.chain(from: 1, limit: 50).count == 2)
        #expect(circle.roots == [1], "a circle has no beginning")
        // 5 waits for 6 in a circle of its own, and 4 for that one.
        var (inner, after) = (Self.waiting(6, .task, 5), Self.waiting(5, .group, 9))
        (inner.group, after.stack) = (9, 1)
        let two = try Self.graph([Self.waiting(1, .group, 8), child, Self.waiting(4, .task, 5), after, inner])
        #expect(two.roots == [1, 4])
    }

    @Test func `a list with an index that does not exist is refused`() {
        #expect(TaskList(tasks: [Self.waiting(1, .sleep, stack: 4)]).fault(stacks: 4) != nil)
        #expect(TaskList(tasks: [Self.waiting(1, .sleep, stack: -1)]).fault(stacks: 4) != nil)
        #expect(TaskList(tasks: [Self.waiting(1, .executor, 0)]).fault(stacks: 4) != nil)
        #expect(TaskList(tasks: [Self.waiting(1, .task, 99)]).fault(stacks: 4) == nil)
    }

    @Test func `an entry counts for the tasks that it stands for`() throws {
        var list = TaskList(
            tasks: [
                Self.waiting(1, .pool), Self.waiting(2, .pool, stack: 1), Self.waiting(4, .executor, 0),
            ], executors: [.init(kind: .actor, address: "0x1")])
        list.tasks[0].count = 3
        #expect(
            TaskGraph(list, try Self.report()).groups()[0].sentence
                == "3 tasks in load() at Loader.swift:10 wait for a thread")
        for count in [0, -1, Int.max] {
            list.tasks[0].count = count
            #expect(list.fault(stacks: 4) != nil)
        }
    }

    @Test func `words of a newer version are read`() throws {
        let json =
            #"{"tasks": [{"id": 1, "state": "frozen", "wait": "moon"}], "executors": [{"kind": "x", "address": "0x1"}], "#
            + #""searchedBytes": 1, "readMilliseconds": 1}"#
        let list = try JSONDecoder().decode(TaskList.self, from: Data(json.utf8))
        #expect(list.tasks == [.init(id: 1, state: .suspended, wait: .other)])
        #expect(list.executors[0].kind == .custom)
        #expect(TaskGraph(list, try Self.report()).wait(of: list.tasks[0]) == "waits")
        #expect(TaskChain(from: 1, in: list).end == .unknown)
    }

    @Test func `the same place has the same standing in two readings`() throws {
        let actors = [0x10, 0x20].map { TaskList.Executor(kind: .actor, address: "0x\($0)") }
        let first = try Self.graph([Self.waiting(1, .executor, 0)], actors)
        let second = try Self.graph([Self.waiting(1, .executor, 1)], actors.reversed())
        let moved = try Self.graph([Self.waiting(1, .executor, 0)], actors.reversed())
        var child = Self.waiting(2, .sleep)
        let groups = try [UInt64(3), 4].map { number in
            child.group = number
            return try Self.graph([Self.waiting(1, .group, number), child])
        }
        #expect(groups[0].standing(of: groups[0].list.tasks[0]) == groups[1].standing(of: groups[1].list.tasks[0]))
        let standings = [first, second, moved].map { $0.standing(of: $0.list.tasks[0]) }
        #expect(standings[0] == standings[1])
        #expect(standings[0] != standings[2])
    }
}
