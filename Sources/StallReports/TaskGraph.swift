/// What the tasks of a list without a ``TaskList/fault(stacks:)`` wait for, to the end of each chain, in words.
package struct TaskGraph {
    /// The most links of a chain that are put into words.
    static let maximumLinks = 12
    /// The most functions of a group's child tasks that are put into words.
    private static let maximumFunctions = 3
    /// The end of a chain that comes back to a task through a group, which is not known to be a deadlock here.
    package static let circleEnd = ", which waits for this one"
    /// A longer name without a file, such as that of a closure in a closure that has not begun, is left out of a chain.
    private static let longestPlace = 60

    package let list: TaskList
    private let report: StallReport
    private let indices: [UInt64: Int]
    private let children: [UInt64: [Int]]
    private let threads: [Int32: StallReport.OtherThread]
    /// The ids of tasks that wait for each other in a circle.
    package let deadlocked: Set<UInt64>
    private let runs: [Int32: Int]

    package init(_ list: TaskList, _ report: StallReport) {
        self.list = list
        self.report = report
        indices = Dictionary(list.tasks.indices.map { (list.tasks[$0].id, $0) }) { first, _ in first }
        children = list.children
        threads = Dictionary((report.otherThreads ?? []).map { ($0.thread.id, $0) }) { first, _ in first }
        let awaited = list.tasks.compactMap { task in task.wait == .task ? task.target.map { (task.id, $0) } : nil }
        deadlocked = Self.circles(Dictionary(awaited) { first, _ in first })
        runs = list.tasks.indices.reduce(into: [:]) { runs, index in
            if let thread = list.tasks[index].thread { runs[thread] = index }
        }
    }

    /// Returns the tasks that wait for each other in circles: each waits for one task, until that has ended.
    static func circles(_ awaited: [UInt64: UInt64]) -> Set<UInt64> {
        var circles: Set<UInt64> = []
        var done: Set<UInt64> = []
        for start in awaited.keys where !done.contains(start) {
            var path: [UInt64] = []
            var next: UInt64? = start
            while let task = next, done.insert(task).inserted {
                path.append(task)
                next = awaited[task]
            }
            if let next, let begin = path.firstIndex(of: next) { circles.formUnion(path[begin...]) }
        }
        return circles
    }

    package func task(_ id: UInt64) -> TaskList.Task? { indices[id].map { list.tasks[$0] } }

    // MARK: - Words

    /// The app's function that the task is in: `load(_:) at Loader.swift:40`; its name if that is not known.
    package func place(of task: TaskList.Task) -> String {
        frame(of: task).map(Self.words) ?? task.name.map { "\"\($0)\"" } ?? "an unknown function"
    }

    /// The function that stands for a task: the innermost one of the app, else of a dependency, else any.
    package func frame(of task: TaskList.Task) -> StallReport.Frame? {
        let all = frames(of: task)
        let frames = all.filter { $0.function != nil && $0.isWritten }
        // A task that has not begun has no frame of its closure but this.
        let closure = all.first { $0.isInApp && $0.function?.hasPrefix(Self.closure) == true }
        return frames.first(where: \.isInApp) ?? frames.first { $0.isDependency == true } ?? closure ?? frames.first
    }

    /// How the demangler calls the code that passes a closure its values.
    private static let closure = "partial apply for "

    package func functions(of task: TaskList.Task) -> [String] { frames(of: task).map(Self.words) }

    /// The frames of a task, the innermost first.
    package func frames(of task: TaskList.Task) -> [StallReport.Frame] {
        let stack = task.stack ?? task.thread.flatMap { threads[$0]?.stack }
        return stack.map(report.provenFrames) ?? []
    }

    private static func words(_ frame: StallReport.Frame) -> String {
        function(frame) + (frame.file.map { " at \(sourcePlace($0, frame.line))" } ?? "")
    }

    private static func function(_ frame: StallReport.Frame) -> String {
        let function = frame.function.map { $0.hasPrefix(closure) ? String($0.dropFirst(closure.count)) : $0 }
        return function ?? "\(frame.offset)"
    }

    /// What a task waits for, to the end of the chain, as a verb with its object: `awaits a continuation`.
    package func wait(of task: TaskList.Task, isPlural: Bool = false) -> String {
        wait(of: task, isPlural ? "" : "s", links: 0, after: [])
    }

    /// What a task waits for, without what that waits for.
    package func step(of task: TaskList.Task) -> String {
        wait(of: task, "s", links: Self.maximumLinks + 1, after: [])
    }

    /// `earlier` are the ids of the tasks before it in the chain: one through a group may come back to them.
    private func wait(of task: TaskList.Task, _ s: String, links: Int, after earlier: Set<UInt64>) -> String {
        let earlier = earlier.union([task.id])
        guard let wait = task.wait else { return "run\(s)" + (task.thread.map { " on \(doing($0))" } ?? "") }
        if deadlocked.contains(task.id) {
            return "await\(s) a task that waits for this one: a deadlock"
        }
        switch wait {
        case .continuation:
            if frames(of: task).awaitStream { return "wait\(s) for the next element of a stream" }
            guard let bytes = bytesWithoutContinuation(of: task) else { return "await\(s) a continuation" }
            return
                "await\(s) a continuation that is likely never resumed: nothing in the \(Self.words(bytes)) of memory that "
                + "were searched holds it"
        case .sleep: return "sleep\(s)"
        case .other: return "wait\(s)"
        case .pool: return "wait\(s) for a thread"
        case .executor: return "await\(s) \(executor(of: task))"
        case .task:
            guard let awaited = task.target.flatMap({ self.task($0) }) else {
                return "await\(s) a task that was not read"
            }
            return "await\(s) a task" + described(awaited, links, after: earlier)
        case .group:
            let members = task.target.flatMap { children[$0] } ?? []
            guard let first = list.awaited(among: members) else { return "await\(s) a child task that was not read" }
            guard members.count > 1 else {
                return "await\(s) a child task" + described(first, links, after: earlier)
            }
            let words = "await\(s) \(members.count) child tasks (\(functions(of: members)))"
            guard links <= Self.maximumLinks else { return words }
            return "\(words), one \(first.isCanceled == true ? "that was asked to end" : "of them")"
                + described(first, links, after: earlier)
        }
    }

    /// The functions of child tasks with their numbers, the most frequent first, and how many more tasks there are.
    private func functions(of children: [Int]) -> String {
        // Thousands of child tasks have few stacks.
        let alike = Dictionary(grouping: children) { [list.tasks[$0].stack, list.tasks[$0].thread.map(Int.init)] }
        var counts: [String: Int] = [:]
        for tasks in alike.values {
            guard let frame = self.frame(of: list.tasks[tasks[0]]) else { continue }
            counts[Self.function(frame), default: 0] += tasks.count
        }
        let most = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(Self.maximumFunctions)
        let more = children.count - most.reduce(0) { $0 + $1.value }
        let words = most.map { "\($0.value) in \($0.key)" } + (more > 0 ? ["\(more) more"] : [])
        return words.joined(separator: ", ")
    }

    /// The bytes of memory without an object of the checked continuation that a task awaits; `nil` if not known.
    package func bytesWithoutContinuation(of task: TaskList.Task) -> UInt64? {
        guard task.wait == .continuation, let bytes = task.searchedInVain else { return nil }
        func isChecked(_ frame: StallReport.Frame) -> Bool {
            ["withCheckedContinuation", "withCheckedThrowingContinuation"].contains { name in
                // So begin, in optimized code too, the mangled names of what is in the standard library's function.
                if let symbol = frame.symbol { return symbol.hasPrefix("$ss\(name.utf8.count)\(name)") }
                let function = frame.function.map { StallReport.GeneratedCode.dropping(["specialized "], from: $0) }
                return function?.hasPrefix(name + "<") == true
            }
        }
        let innermost = frames(of: task).prefix { !$0.isInApp || isChecked($0) }
        return innermost.contains(where: isChecked) ? bytes : nil
    }

    private static func words(_ bytes: UInt64) -> String {
        // A report may have any number.
        let megabytes = bytes / 1_000_000 + (bytes % 1_000_000 >= 500_000 ? 1 : 0)
        return megabytes == 0 ? "\(bytes / 1_000) kB" : "\(megabytes) MB"
    }

    /// " in load(_:), which awaits a continuation".
    private func described(_ task: TaskList.Task, _ links: Int, after earlier: Set<UInt64>) -> String {
        let function = frame(of: task).flatMap { $0.file == nil ? $0.function : nil } ?? ""
        let place = function.count > Self.longestPlace ? "" : " in \(place(of: task))"
        // A single step ends here.
        if links > Self.maximumLinks { return "" }
        if earlier.contains(task.id) { return place + Self.circleEnd }
        guard links < Self.maximumLinks else { return place + ", which waits for more" }
        return "\(place), which \(wait(of: task, "s", links: links + 1, after: earlier))"
    }

    private func executor(of task: TaskList.Task) -> String {
        guard let executor = list.executor(of: task) else { return "an executor that is not known" }
        let object = executor.name ?? "\(executor.address)"
        let name =
            switch executor.kind {
            case .actor: "actor \(object)"
            case .mainActor: "the main actor"
            case .task: "a thread of task executor \(object)"
            case .custom: "executor \(object)"
            }
        guard let thread = executor.thread else {
            // Which thread runs it may only not be known.
            return executor.kind == .task ? name : "\(name), which no thread is known to run"
        }
        guard let task = runs[thread] else { return "\(name) on \(doing(thread))" }
        return "\(name), which runs \(place(of: list.tasks[task])) on \(doing(thread))"
    }

    /// `thread 91 "worker", which waits in read(2) of data.bin`.
    private func doing(_ thread: Int32) -> String {
        guard let known = threads[thread] else { return "thread \(thread)" }
        let words = "\(report.words(for: known.thread, stack: known.stack)), which \(known.activity)"
        guard let owner = known.lock?.owners.first.flatMap({ threads[$0.thread.id] }) else { return words }
        return "\(words); that thread \(owner.activity)"
    }

    // MARK: - Groups

    /// Tasks in the same function that wait for the same.
    package struct Group: Codable, Sendable, Equatable {
        package var sentence: String
        /// The ids, ascending.
        package var tasks: [UInt64]
    }

    /// Returns the shown tasks in groups by their functions and waits, the largest group first.
    package func groups(where isShown: (TaskList.Task) -> Bool = { _ in true }) -> [Group] {
        var groups: [[String]: [Int]] = [:]
        for index in list.tasks.indices where isShown(list.tasks[index]) {
            let task = list.tasks[index]
            groups[[place(of: task), wait(of: task)], default: []].append(index)
        }
        let made: [(Int, Group)] = groups.map { key, members in
            let ids = members.map { list.tasks[$0].id }.sorted()
            let count = members.reduce(0) { $0 + (list.tasks[$1].count ?? 1) }
            let noun = count == 1 ? "1 task" : "\(count) tasks"
            let verb = count == 1 ? key[1] : wait(of: list.tasks[members[0]], isPlural: true)
            return (count, Group(sentence: "\(noun) in \(key[0]) \(verb)", tasks: ids))
        }
        return made.sorted { ($1.0, $0.1.sentence) < ($0.0, $1.1.sentence) }.map(\.1)
    }

    /// Returns at most `limit` tasks: the task itself, what it waits for, and so on, with their depths.
    package func chain(from id: UInt64, limit: Int) -> [(depth: Int, task: TaskList.Task)] {
        var chain: [(Int, TaskList.Task)] = []
        var seen: Set<UInt64> = []
        var next: [(Int, UInt64)] = [(0, id)]
        while chain.count < limit, let (depth, id) = next.popLast() {
            guard let task = task(id), seen.insert(id).inserted else { continue }
            chain.append((depth, task))
            next += awaited(by: task).reversed().map { (depth + 1, $0) }
        }
        return chain
    }

    package func awaited(by task: TaskList.Task) -> [UInt64] {
        switch task.wait {
        case .task: return task.target.map { [$0] } ?? []
        case .group: return (task.target.flatMap { children[$0] } ?? []).map { list.tasks[$0].id }
        case .executor:
            return list.executor(of: task)?.thread.flatMap { runs[$0] }.map { [list.tasks[$0].id] } ?? []
        default: return []
        }
    }

    /// The ids of the tasks that no other task waits for: where trees begin; of a circle, its smallest.
    package var roots: [UInt64] {
        let awaited = Set(list.tasks.lazy.flatMap { self.awaited(by: $0) })
        var seen: Set<UInt64> = []
        func isNew(_ id: UInt64) -> Bool {
            guard !seen.contains(id) else { return false }
            var next = [id]
            while let id = next.popLast() {
                guard let task = task(id), seen.insert(id).inserted else { continue }
                next += self.awaited(by: task)
            }
            return true
        }
        // A circle has no beginning.
        var roots = list.tasks.map(\.id).filter { deadlocked.contains($0) ? isNew($0) : !awaited.contains($0) }
        for id in roots { _ = isNew(id) }
        // Nor has one through a group or an actor, which is not known to be a deadlock. What is after such a circle is none.
        var circles: [UInt64] = []
        for id in list.tasks.map(\.id) where isNew(id) {
            let reached = Set(chain(from: id, limit: list.tasks.count).map(\.task.id))
            circles = circles.filter { !reached.contains($0) } + [id]
        }
        roots += circles
        return roots.sorted()
    }

    /// What identifies a task's place in two answers: it has not moved if it is the same in both.
    package func standing(of task: TaskList.Task) -> Standing {
        let target: String? =
            switch task.wait {
            // Indices and numbers are those of one answer.
            case .executor: list.executor(of: task).map { "\($0.address)" }
            case .group: "\(awaited(by: task))"
            default: task.target.map { "\($0)" }
            }
        return Standing(
            state: task.state, wait: task.wait, target: target, thread: task.thread,
            frames: frames(of: task).map(\.offset))
    }

    package struct Standing: Equatable, Sendable {
        var state: TaskList.TaskState
        var wait: TaskList.Wait?
        var target: String?
        var thread: Int32?
        var frames: [StallReport.Address]
    }
}
