import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

/// Reads the tasks that stalls keep waiting, each time on a thread that ends then.
///
/// A reading searches all memory, so there are not many: what is not read is not in the report.
final class TaskWatch: Sendable {
    /// The time after a reading in which there is no other one, as a multiple of its own: 2 % of a CPU.
    private static let restFactor: UInt64 = 50
    /// The shortest time between two readings, in nanoseconds (100 ms).
    private static let shortestRest: UInt64 = 100_000_000
    /// The longest reading, in nanoseconds (11 s): 5 s for the memory, and 5 s for the search for a continuation.
    static let longestReading: UInt64 = 11_000_000_000
    /// The most tasks of a dump of a hang.
    private static let maximumTasks = 1_000

    private struct State {
        /// The thread of the last reading.
        var thread: WorkerThread?
        var isReading = false
        /// When the next reading may begin, in monotonic nanoseconds.
        var next: UInt64 = 0
    }
    private let state = Mutex(State())
    private let reported: ReportedTasks

    init(_ reported: ReportedTasks) { self.reported = reported }

    /// Starts to read the tasks that wait for a loop; `nil` if none does, or the last reading was a moment ago.
    ///
    /// The stall began at `began`, in monotonic nanoseconds.
    func read(_ kind: LoopKind, _ target: CaptureTarget, began: UInt64) -> WaitingTasks? {
        guard let chosen = choice(kind, target) else { return nil }
        return state.withLock { state in
            guard !state.isReading, monotonicNow() >= state.next else { return nil }
            // It has nothing left to do, so this does not wait.
            state.thread?.join()
            let waiting = WaitingTasks(began: began)
            state.thread = try? WorkerThread(name: "stallwatch-task") { [self] in
                let begin = monotonicNow()
                Self.fill(waiting, chosen)
                let end = monotonicNow()
                let rest = max((end - begin) * Self.restFactor, Self.shortestRest)
                self.state.withLock { ($0.isReading, $0.next) = (false, end + rest) }
            }
            state.isReading = state.thread != nil
            return state.isReading ? waiting : nil
        }
    }

    /// Waits for the end of a reading, until a deadline in monotonic nanoseconds.
    func finish(until deadline: UInt64) {
        state.withLock { $0.thread.take() }?.finish(until: deadline)
    }

    /// What to keep of a list that was read; returns the tasks whose continuations are to be searched for.
    private typealias Choice = @Sendable (inout TaskList, TaskReading) -> [SwiftTask]

    /// `nil` if no task can wait for the loop.
    private func choice(_ kind: LoopKind, _ target: CaptureTarget) -> Choice? {
        switch (reported, target) {
        case (.all, _):
            return { list, reading in
                list.tasks = Array(list.tasks.prefix(Self.maximumTasks))
                let kept = Set(list.tasks.map(\.id))
                return reading.tasks.filter { $0.dependency == .continuation && kept.contains($0.id) }
            }
        case (.chain(let address), _):
            return { list, reading in
                guard let task = reading.tasks.first(where: { $0.address == address }) else {
                    list.tasks = []
                    return []
                }
                let chain = TaskChain(from: task.id, in: list)
                list = OverdueOperation.kept(of: list, with: chain)
                return reading.tasks.filter { $0.id == chain.awaiting }
            }
        case (.waiting, .pool) where kind == .cooperativePool:
            // An actor that no thread runs waits for one of the pool.
            return { list, _ in
                list.keepEnqueued { $0.map { $0.kind == .actor && $0.thread == nil } ?? true }
                return []
            }
        case (.waiting, .thread(let thread)) where thread == getpid() || kind == .serialExecutor:
            return { list, _ in
                list.keepEnqueued { $0?.thread == thread }
                return []
            }
        default: return nil
        }
    }

    /// Reads the tasks, and keeps those that are chosen.
    private static func fill(_ waiting: WaitingTasks, _ choose: Choice) {
        guard let reader = try? TaskReader.ofThisProcess() else { return }
        let begin = monotonicNow()
        let reading = reader.read()
        var stacks: [CapturedStack] = []
        var list = TaskInspection.list(of: reading, reader.memory) { stack in
            stacks.append(stack)
            return stacks.count - 1
        }
        let end = monotonicNow()
        list.readMilliseconds = milliseconds(end - begin)
        let searched = choose(&list, reading)
        waiting.set(list, stacks, at: end)
        // What is not found in a part of the memory may be in the rest.
        if reading.incompleteReason == nil, !searched.isEmpty {
            list.note(reader.tasksWithoutContinuation(among: searched))
            waiting.set(list, stacks, at: end)
        }
    }
}
