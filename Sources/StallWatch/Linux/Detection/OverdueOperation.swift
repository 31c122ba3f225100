import StackCapture
import StallReports

struct OverdueOperation: Sendable {
    /// The id of the operation's task; `nil` if it could not be read.
    var task: UInt64?
    /// The tasks of its chain, those that it may be waiting for, and those that run; their stacks are in ``stacks``.
    var list = TaskList(tasks: [])
    var stacks: [CapturedStack] = []
    var images = ImageList()
    /// Why it is not known what the operation waits for; `nil` if it is.
    var reason: String?

    init(reason: String) { self.reason = reason }

    init(_ task: UInt64, in list: TaskList, _ stacks: [CapturedStack], _ images: ImageList) {
        self.task = task
        self.images = images
        let chain = TaskChain(from: task, in: list)
        self.list = Self.kept(of: list, with: chain)
        let ids = Set(chain.tasks.map(\.id))
        var others = 0
        for index in self.list.tasks.indices where !ids.contains(self.list.tasks[index].id) {
            others += 1
            if others > Self.maximumStacks { self.list.tasks[index].stack = nil }
        }
        var kept: [CapturedStack] = []
        self.list.renumberStacks { old in
            kept.append(stacks[old])
            return kept.count - 1
        }
        self.stacks = kept
    }

    static func kept(of list: TaskList, with chain: TaskChain) -> TaskList {
        let ids = Set(chain.tasks.map(\.id))
        let groups = Set(chain.tasks.lazy.filter { $0.wait == .group }.compactMap(\.target))
        var others = 0
        var kept = list
        kept.tasks = list.tasks.filter { task in
            // The sentence counts the children.
            if ids.contains(task.id) || task.group.map(groups.contains) == true { return true }
            guard task.thread != nil else { return false }
            others += 1
            return others <= maximumOthers
        }
        return kept
    }

    private static let maximumOthers = 1_000
    /// The most tasks outside of the chain that keep their stacks.
    private static let maximumStacks = 100
}

struct CapturedTasks: Sendable {
    var list: TaskList
    var stacks: [CapturedStack]

    /// Returns the list with the stacks' indices in a report; `store` stores a stack and returns its index.
    func list(storing store: (CapturedStack) -> Int) -> TaskList {
        var list = list
        list.renumberStacks { store(stacks[$0]) }
        return list
    }
}

extension TaskList {
    /// Gives the stacks new indices; `store` stores the stack with an old index, once, and returns its new one.
    mutating func renumberStacks(_ store: (Int) -> Int) {
        var indices: [Int: Int] = [:]
        for index in tasks.indices {
            guard let old = tasks[index].stack else { continue }
            let new = indices[old] ?? store(old)
            indices[old] = new
            tasks[index].stack = new
        }
    }
}
