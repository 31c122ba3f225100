import LinuxSupport
import StackCapture
import StallReports
import Synchronization

/// Reads the Swift tasks for the dump of a hang, on a thread of its own.
final class HangTasks: Sendable {
    private static let maximumTasks = 1_000

    private let reported: ReportedTasks
    private let found = Mutex<CapturedTasks?>(nil)

    init(_ reported: ReportedTasks) { self.reported = reported }

    /// Reads by a deadline in monotonic nanoseconds, 5 s for memory and 5 s for a search; `nil` if unreadable.
    func read(until deadline: UInt64) -> CapturedTasks? {
        let thread = try? WorkerThread(name: "stallwatch-task", namesFunctions: true) { [self] in read() }
        thread?.finish(until: deadline)
        return found.withLock { $0 }
    }

    private func read() {
        guard let reader = try? TaskReader.ofThisProcess() else { return }
        let begin = monotonicNow()
        let reading = reader.read()
        var stacks: [CapturedStack] = []
        var list = TaskInspection.list(of: reading, reader.memory) { stack in
            stacks.append(stack)
            return stacks.count - 1
        }
        list.readMilliseconds = milliseconds(monotonicNow() - begin)
        let searched = choose(from: &list, reading)
        found.withLock { $0 = CapturedTasks(list: list, stacks: stacks) }
        // What is not found in a part of the memory may be in the rest.
        guard reading.incompleteReason == nil, !searched.isEmpty else { return }
        list.markSearched(reader.tasksWithoutContinuation(among: searched))
        found.withLock { $0 = CapturedTasks(list: list, stacks: stacks) }
    }

    /// Removes the tasks that are not reported; returns those whose continuations are to be searched for.
    private func choose(from list: inout TaskList, _ reading: TaskReading) -> [SwiftTask] {
        switch reported {
        case .all:
            list.tasks = Array(list.tasks.prefix(Self.maximumTasks))
            let kept = Set(list.tasks.map(\.id))
            return reading.tasks.filter { $0.dependency == .continuation && kept.contains($0.id) }
        case .chain(let address):
            guard let task = reading.tasks.first(where: { $0.address == address }) else {
                list.tasks = []
                return []
            }
            let chain = TaskChain(from: task.id, in: list)
            list = OverdueOperation.kept(of: list, with: chain)
            return reading.tasks.filter { $0.id == chain.awaiting }
        }
    }
}
