import LinuxSupport
import StackCapture
import Synchronization

/// Searches memory for the continuations that overdue operations await, on a thread that ends when none is left.
///
/// A search takes a second and more, for which neither the thread of the operations nor a report waits. It also finds
/// nothing for a continuation that is not a checked one: only the names of functions tell them apart, so the report is
/// written again then, and says what it said before.
final class ContinuationSearch: Sendable {
    /// The tasks without a continuation, and the memory that was searched, in bytes.
    typealias Result = (ids: Set<UInt64>, bytes: UInt64)

    /// The time after a search in which there is no other one, as a multiple of its CPU time: 2 % of a CPU.
    private static let restFactor: UInt64 = 50
    /// The longest wait for the end of the thread, in nanoseconds (1 s): a search ends after what it does in that time.
    private static let longestStop: UInt64 = 1_000_000_000

    private struct Searching {
        var thread: WorkerThread?
        var isSearching = false
        /// What each operation's chain ends with, a task that awaits a continuation.
        var waiting: [(operation: OperationRegistry.Operation, task: SwiftTask)] = []
        var findings: [UInt64: Result] = [:]
    }
    private let state = Mutex(Searching())
    private let registry: OperationRegistry
    private let pause = Semaphore()
    private let found: @Sendable () -> Void

    /// Creates a search for operations of a registry; calls `found`, on its own thread, when it has found something.
    init(for registry: OperationRegistry, found: @escaping @Sendable () -> Void) {
        self.registry = registry
        self.found = found
    }

    /// Takes what was found, by the number of the operation.
    func takeFindings() -> [UInt64: Result] { state.withLock { exchange(&$0.findings, with: [:]) } }

    /// Starts to search for the continuation of a task, at which the chain of an operation ends; once for each.
    func start(_ operation: OperationRegistry.Operation, _ task: SwiftTask) {
        state.withLock { state in
            // So there are never more than operations that have a report.
            state.waiting.removeAll { !registry.isInProgress($0.operation) }
            state.waiting.append((operation, task))
            guard !state.isSearching, registry.isOpen else { return }
            // It has nothing left to do, so this does not wait.
            state.thread?.join()
            state.thread = try? WorkerThread(name: "stallwatch-find") { [self] in run() }
            state.isSearching = state.thread != nil
        }
    }

    /// Ends the thread; call it once the registry is closed.
    func stop() {
        pause.post()
        state.withLock { $0.thread.take() }?.finish(until: monotonicNow() &+ Self.longestStop)
    }

    private func run() {
        let reader = try? TaskReader.ofThisProcess()
        while let waiting = next() {
            let begin = threadTimeNow()
            let search = reader?.tasksWithoutContinuation(among: waiting.map(\.task)) { registry.isOpen }
            let findings = waiting.filter { search?.ids.contains($0.task.id) == true }
            if let search, !findings.isEmpty {
                state.withLock { state in
                    for finding in findings {
                        state.findings[finding.operation.number] = ([finding.task.id], search.bytes)
                    }
                }
                found()
            }
            pause.wait(until: monotonicNow() &+ (threadTimeNow() &- begin) &* Self.restFactor)
        }
    }

    /// Takes the operations that are still in progress; `nil` if there is none.
    private func next() -> [(operation: OperationRegistry.Operation, task: SwiftTask)]? {
        state.withLock { state in
            let waiting = registry.isOpen ? state.waiting.filter { registry.isInProgress($0.operation) } : []
            state.waiting = []
            state.isSearching = !waiting.isEmpty
            return waiting.isEmpty ? nil : waiting
        }
    }
}
