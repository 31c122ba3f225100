/// The threads of a process that hangs, as text: what each does, and where the app's code is.
package struct HangText {
    /// The largest number of the app's functions that are shown of one thread.
    private static let maximumFrames = 6
    private static let maximumTasks = 20

    private let report: StallReport

    /// - Parameter report: A validated, symbolicated report of a hang.
    package init(_ report: StallReport) {
        self.report = report
    }

    private struct DescribedThread {
        var description: StallReport.ThreadDescription
        var activity: String
        var frames: [StallReport.Frame]
        var lock: StallReport.Lock?
        /// Why the app's code may be on the stack unseen, empty if the reason is not known; `nil` for a whole stack.
        var gap: String?
        /// Whether it surely has nothing to do.
        var isIdle: Bool

        /// Whether it explains the hang: the others wait for work.
        var isNotable: Bool { !frames.isEmpty || lock?.owners.isEmpty == false }
        var isDeadlocked: Bool { lock?.isDeadlock ?? false }
    }

    /// The lines, without a line feed.
    package var lines: [String] {
        let others = (report.otherThreads ?? []).filter { $0.reason != StallReport.OtherThread.ended }
        let threads = [mainThread].compactMap(\.self) + others.map(describe)
        let notable = threads.filter(\.isNotable)
        var lines: [String] = []
        for thread in notable.filter(\.isDeadlocked) + notable.filter({ !$0.isDeadlocked }) {
            lines.append("\(thread.description.inWords) \(thread.activity)")
            for frame in thread.frames.prefix(Self.maximumFrames) { lines.append("    \(Self.line(of: frame))") }
            if thread.frames.count > Self.maximumFrames {
                lines.append("    … \(thread.frames.count - Self.maximumFrames) more")
            }
        }
        let waiting = threads.filter { !$0.isNotable }
        let rest = waiting.filter { $0.gap == nil }.map(\.description.inWords)
        if !rest.isEmpty { lines.append("in no code of the app: \(rest.joined(separator: ", "))") }
        let unseen = waiting.compactMap { thread in
            thread.gap.map { thread.description.inWords + ($0.isEmpty ? "" : " (\($0))") }
        }
        if !unseen.isEmpty { lines.append("not captured, or not to the end: \(unseen.joined(separator: ", "))") }
        if let omitted = report.omittedThreads { lines.append("not captured, because there are too many: \(omitted)") }
        let tasks = tasks
        if notable.isEmpty {
            let isIdle =
                waiting.allSatisfy(\.isIdle) && report.omittedThreads == nil
                && report.tasks?.tasks.contains { $0.wait == nil } != true
            lines.append(
                isIdle
                    ? "No thread is in the app's code or waits for a lock: the main actor and the task pool likely "
                        + "have nothing to do." + (tasks.isEmpty ? Self.guess : "")
                    : "No thread is known to be in the app's code, or to wait for a lock that another thread holds.")
        }
        lines += tasks
        return lines
    }

    private static let guess =
        " A task may wait for something that has not come, such as a continuation that was never resumed, a stream "
        + "that never ends, or an answer."

    /// What the tasks in the app's code wait for, to the end of each chain; without those that such a task awaits.
    private var tasks: [String] {
        guard let list = report.tasks else { return [] }
        let graph = TaskGraph(list, report)
        let inApp = list.tasks.filter { task in
            task.wait != nil && graph.frames(of: task).contains { $0.isInApp && $0.isWritten && !$0.startsProgram }
        }
        let awaited = Set(inApp.flatMap(graph.awaited(by:)))
        let shown = Set(inApp.map(\.id)).subtracting(awaited)
        let circles = graph.deadlocked.isEmpty ? shown : shown.union(graph.deadlocked)
        let groups = graph.groups { circles.contains($0.id) }
        let left = groups.count - Self.maximumTasks
        return groups.prefix(Self.maximumTasks).map(\.sentence) + (left > 0 ? ["… \(left) more places of tasks"] : [])
    }

    private var mainThread: DescribedThread? {
        guard let description = report.loop.thread else { return nil }
        let sample = report.samples.last { $0.stack != nil } ?? report.samples.last
        var thread = StallReport.OtherThread(thread: description)
        (thread.stack, thread.threadState) = (sample?.stack, report.samples.last?.threadState)
        thread.reason = sample?.reason
        (thread.systemCall, thread.lock) = (report.cause?.systemCall, report.cause?.lock)
        return describe(thread)
    }

    private func describe(_ thread: StallReport.OtherThread) -> DescribedThread {
        let frames = thread.stack.map(report.provenFrames) ?? []
        let owner = StallReport.LockOwner(thread: thread.thread, stack: thread.stack, isRunning: false)
        let waits = thread.threadState == .blocked && (thread.lock == nil || report.isIdle(owner))
        let gap = thread.stack == nil ? thread.reason ?? "" : thread.reason
        return DescribedThread(
            description: thread.thread, activity: thread.activity, frames: thread.stack.map(appFrames) ?? [],
            lock: thread.lock, gap: gap,
            isIdle: gap == nil && waits && !frames.contains(where: \.mayBeAtWork))
    }

    /// The app's functions on a stack, innermost first, without those that only start the program or its tests.
    private func appFrames(of stack: Int) -> [StallReport.Frame] {
        let frames = report.provenFrames(ofStack: stack).filter { $0.isInApp && $0.isWritten }
        // Further in, a function of that name is another one.
        return Array(frames.reversed().drop { $0.startsProgram }.reversed())
    }

    private static func line(of frame: StallReport.Frame) -> String {
        let name = frame.function ?? "\(frame.offset)"
        let place = frame.file.map { file in "  \(file)\(frame.line.map { ":\($0)" } ?? "")" } ?? ""
        return name + place
    }
}

extension StallReport.Frame {
    /// Whether it is code of a package, which may have something to do for the app.
    fileprivate var mayBeAtWork: Bool { isDependency == true && kind != .asyncCaller && !startsProgram }

    /// Whether the function starts the program or its tests: `main`, or what the package manager generates.
    fileprivate var startsProgram: Bool {
        function == "main" || function == "_start" || file?.contains(".derived/") == true
            || symbol?.hasSuffix("_main") == true
    }
}
