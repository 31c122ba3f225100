import LinuxSupport
import StallReports
import Synchronization

/// The tasks of a live process, which a thread of its own asks for: an answer may take seconds.
final class WatchedTasks: Sendable {
    /// The shortest time between two readings, in nanoseconds (10 s): each searches the process's memory.
    private static let shortestPeriod: UInt64 = 10_000_000_000
    /// The time between two readings, as a multiple of the last one's: 2 % of a CPU.
    private static let periodFactor = 50.0

    private let client: ControlClient
    private let latest = Mutex<TaskStandings.Summary?>(nil)

    init(of client: ControlClient) { self.client = client }

    /// The latest reading; `nil` if there is none, or the process has no task.
    var summary: TaskStandings.Summary? { latest.withLock { $0 } }

    /// Starts the thread, which lasts as long as the tool.
    func follow() {
        try? WorkerThread(name: "tasks", namesFunctions: true) { [self] in
            var standings = TaskStandings()
            let isOver = Semaphore()
            while true {
                let took = read(&standings) * Self.periodFactor * 1_000_000
                isOver.wait(until: monotonicNow() &+ max(Self.shortestPeriod, UInt64(took)))
            }
        }.detach()
    }

    func read() {
        var standings = TaskStandings()
        _ = read(&standings)
    }

    /// Returns the time of the reading in the process, in milliseconds; what was known stays if there is no answer.
    private func read(_ standings: inout TaskStandings) -> Double {
        guard let answer = try? client.answer(to: .tasks), let list = answer.tasks, let report = answer.report else {
            return 0
        }
        let summary = standings.update(TaskGraph(list, report), at: monotonicNow())
        latest.withLock { $0 = summary.count == 0 ? nil : summary }
        // Another process's number.
        return min(max(list.readMilliseconds, 0), 60_000)
    }
}

struct TaskStandings {
    struct Summary: Encodable, Equatable, Sendable {
        var count: Int
        /// The number of those that wait for something else than a thread.
        var suspended: Int
        /// The longest time for which a suspended task was at the same place in each reading; `nil` if none was in two.
        var unmovedMilliseconds: Double?
        var unmoved: String?

        /// `318 tasks, 300 suspended; unmoved for 2 min: task 12 in load() awaits a continuation`.
        var text: String {
            let longest = unmovedMilliseconds.map { "; unmoved for \(WatchFrame.age($0)): \(unmoved ?? "")" } ?? ""
            return "\(counted(count, "task", "tasks")), \(suspended) suspended\(longest)"
        }
    }

    private var known: [UInt64: (standing: TaskGraph.Standing, since: UInt64)] = [:]

    /// Adds a reading, made at a time in monotonic nanoseconds.
    mutating func update(_ graph: TaskGraph, at now: UInt64) -> Summary {
        var next: [UInt64: (standing: TaskGraph.Standing, since: UInt64)] = [:]
        for task in graph.list.tasks where task.state == .suspended {
            let standing = graph.standing(of: task)
            let since = known[task.id].flatMap { $0.standing == standing ? $0.since : nil } ?? now
            next[task.id] = (standing, since)
        }
        known = next
        var summary = Summary(count: graph.list.tasks.count, suspended: next.count)
        let longest = next.min { ($0.value.since, $0.key) < ($1.value.since, $1.key) }
        if let (id, (_, since)) = longest, since < now, let task = graph.task(id) {
            summary.unmovedMilliseconds = Double(now - since) / 1_000_000
            summary.unmoved = "task \(id) in \(graph.place(of: task)) \(graph.wait(of: task))"
        }
        return summary
    }
}
