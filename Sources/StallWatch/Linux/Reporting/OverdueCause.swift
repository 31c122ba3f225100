import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

extension OverdueOperation {
    /// Returns the links of the chain, without names; `stack` stores a stack and returns its index.
    func waits(
        _ threads: [StallRecord.OtherThread], _ threadImages: ImageList, stack: (CapturedStack, ImageList) -> Int
    ) -> [StallReport.Wait]? {
        guard let task else { return nil }
        let chain = TaskChain(from: task, in: list)
        func running(_ id: Int32) -> StallReport.Wait {
            let captured = try? threads.first { $0.thread.id == id }?.stack.get()
            let runs = list.tasks.first { $0.thread == id }
            return StallReport.Wait(
                kind: .running, task: runs?.id, name: runs?.name, thread: id,
                stack: captured.map { stack($0, threadImages) })
        }
        var waits = chain.tasks.map { task in
            guard let wait = task.wait else {
                return task.thread.map(running) ?? .init(kind: .running, task: task.id, name: task.name)
            }
            let executor = list.executor(of: task)
            var link = StallReport.Wait(
                kind: .init(rawValue: wait.rawValue), task: task.id, name: task.name,
                executor: executor?.kind == .mainActor ? "MainActor" : executor?.name, thread: executor?.thread,
                stack: task.stack.map { stack(stacks[$0], images) })
            let children = list.stackedChildren(of: task).compactMap { list.tasks[$0].stack }
            if !children.isEmpty { link.childStacks = children.map { stack(stacks[$0], images) } }
            return link
        }
        switch chain.end {
        case .thread(let thread) where waits.last?.kind != .running: waits.append(running(thread))
        case .pool:
            let workers = threads.map(\.thread.id).filter { id in list.tasks.contains { $0.thread == id } }
            waits += workers.map(running)
        default: break
        }
        return waits
    }
}

extension TaskList {
    /// The indices of the child tasks in the group that a task waits for, if their stacks are known.
    fileprivate func stackedChildren(of task: Task) -> [Int] {
        guard task.wait == .group, let group = task.target else { return [] }
        return tasks.indices.filter { tasks[$0].group == group && tasks[$0].stack != nil }
    }
}

struct OverdueCause {
    private let operation: OverdueOperation
    private let activities: [Int32: Cause.Kind]

    init(_ operation: OverdueOperation, _ threads: [StallRecord.OtherThread]) {
        self.operation = operation
        activities = threads.reduce(into: [:]) { $0[$1.thread.id] = $1.activity }
    }

    func explain(_ report: inout StallReport) {
        guard let task = operation.task, var waits = report.waits else {
            let reason = operation.reason ?? "its task could not be read"
            report.missingCulpritReason = reason
            report.cause = .init(
                .unknown, "What it waits for is not known: \(reason).", .possible, cpuShare: 0, in: report)
            return
        }
        var list = operation.list
        for index in list.tasks.indices {
            let id = list.tasks[index].id
            list.tasks[index].stack = waits.first { $0.task == id && $0.kind != .running }?.stack
        }
        for wait in waits {
            guard let stacks = wait.childStacks, let task = operation.list.tasks.first(where: { $0.id == wait.task })
            else { continue }
            for (child, stack) in zip(operation.list.stackedChildren(of: task), stacks) {
                list.tasks[child].stack = stack
            }
        }
        list.markSleeps(report)
        let graph = TaskGraph(list, report)
        for index in waits.indices {
            if waits[index].kind == .running {
                let frames = waits[index].stack.map { report.stacks[$0].map { report.frames[$0] } } ?? []
                let culprit = StallReport.culprit(of: frames, images: report.images)
                (waits[index].function, waits[index].file, waits[index].line) =
                    (culprit?.function, culprit?.file, culprit?.line)
            } else if let task = waits[index].task.flatMap(graph.task) {
                if task.wait == .sleep { waits[index].kind = .sleep }
                let frame = graph.frame(of: task).flatMap { $0.isInApp || $0.isDependency == true ? $0 : nil }
                (waits[index].function, waits[index].file, waits[index].line) =
                    (frame?.function, frame?.file, frame?.line)
            }
        }
        report.waits = waits
        let chain = TaskChain(from: task, in: list)
        guard let first = chain.tasks.first else { return }
        // A function's name is no word that a sentence may change.
        let place = graph.place(of: first)
        let subject = graph.frame(of: first) == nil ? place.prefix(1).uppercased() + place.dropFirst() : place
        let sentence = "\(subject) \(graph.wait(of: first))"
        let isLost = chain.tasks.last.flatMap(graph.bytesWithoutContinuation) != nil
        let whole = "\(sentence)\(isLost ? "" : Self.rest(chain, report, after: sentence))."
        let kind = kind(of: chain, waits)
        report.cause = .init(
            kind, whole, chain.end == .circle ? .certain : .likely,
            cpuShare: kind == .cpu ? 1 : 0, in: report)
    }

    private func kind(of chain: TaskChain, _ waits: [StallReport.Wait]) -> StallReport.CauseKind {
        switch chain.end {
        case .thread(let thread): return activities[thread] ?? .unknown
        case .pool:
            // What most of the threads that run tasks do; nothing is known if they do different things.
            let kinds = Set(waits.filter { $0.kind == .running }.compactMap { $0.thread.flatMap { activities[$0] } })
            return kinds.count == 1 ? kinds.first ?? .unknown : .unknown
        case .continuation: return .continuation
        case .sleep: return .sleep
        case .circle: return .deadlock
        case .executor, .unknown: return .unknown
        }
    }

    private static func rest(_ chain: TaskChain, _ report: StallReport, after sentence: String) -> String {
        let waits = report.waits ?? []
        switch chain.end {
        case .continuation where !sentence.hasSuffix("awaits a continuation"): return ""
        case .continuation where report.state == .ended: return ", which nothing had resumed when it was read"
        case .continuation: return ", which nothing has resumed yet"
        case .thread(let thread):
            guard let last = waits.last, last.kind == .running, let function = last.function,
                !" \(sentence)".contains(" \(function)")
            else { return "" }
            return "; thread \(thread) is in \(function)"
                + (last.file.map { " at \(sourcePlace($0, last.line))" } ?? "")
        case .pool:
            let places = waits.filter { $0.kind == .running }.map { wait in
                "thread \(wait.thread ?? 0)" + (wait.function.map { " in \($0)" } ?? "")
            }
            return places.isEmpty ? "" : "; tasks run on " + places.joined(separator: ", ")
        case .unknown where sentence.hasSuffix(TaskGraph.circleEnd):
            return "; it is not known whether another child task ends the wait"
        case .unknown: return "; it is not known what that waits for"
        case .sleep, .executor, .circle: return ""
        }
    }
}

extension StallReport.Cause {
    /// A cause whose split of the time is an estimate, because the tasks or threads were read at few moments.
    init(
        _ kind: StallReport.CauseKind, _ summary: String, _ confidence: StallReport.Confidence, cpuShare: Double,
        in report: StallReport
    ) {
        let all = report.durationMilliseconds
        self.init(
            kind: kind, confidence: confidence, onCPUMilliseconds: all * cpuShare, runQueueMilliseconds: 0,
            blockedMilliseconds: all * (1 - cpuShare), uncertaintyMilliseconds: all)
        self.summary = summary.withoutControls
    }
}
