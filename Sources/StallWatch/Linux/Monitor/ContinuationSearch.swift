import LinuxSupport
import StackCapture
import Synchronization

/// Searches memory for the continuations that overdue operations await, on a thread that the first of them starts.
///
/// A search takes a second and more, for which neither the thread of the operations nor a report waits. It also finds
/// nothing for a continuation that is not a checked one: only the names of functions tell them apart, so the report is
/// written again then, and says what it said before.
final class ContinuationSearch: Sendable {
    /// The tasks without a continuation, and the memory that was searched, in bytes.
    typealias Result = (ids: Set<UInt64>, bytes: UInt64)

    /// The time after a search in which there is no other one, as a multiple of its CPU time: 2 % of a CPU.
    private static let restFactor: UInt64 = 50
    /// The longest time of a search, in nanoseconds (30 s): nothing waits for it, and a busy machine gives it little CPU.
    private static let longestTime = 6 * TaskReader.longestTime

    private typealias Wait = (operation: OperationRegistry.Operation, task: SwiftTask)

    private let waits = Mailbox<Wait>()
    private let worker = Worker(name: "stallwatch-find")
    private let findings = Mutex<[UInt64: Result]>([:])
    private let registry: OperationRegistry
    private let found: @Sendable () -> Void

    /// Creates a search for operations of a registry; calls `found`, on its own thread, when it has found something.
    init(for registry: OperationRegistry, found: @escaping @Sendable () -> Void) {
        self.registry = registry
        self.found = found
    }

    func takeFindings() -> [UInt64: Result] { findings.withLock { exchange(&$0, with: [:]) } }

    /// Starts to search for the continuation of a task, at which the chain of an operation ends; once for each.
    func start(_ operation: OperationRegistry.Operation, _ task: SwiftTask) {
        // So there are never more than operations that have a report.
        waits.put((operation, task), replacing: { !self.registry.isInProgress($0.operation) })
        _ = try? worker.start { [self] in run() }
    }

    /// Ends the thread, and waits until a deadline in monotonic nanoseconds; call it once the registry is closed.
    func stop(until deadline: UInt64) {
        waits.close()
        worker.finish(until: deadline)
    }

    private func run() {
        let reader = try? TaskReader.ofThisProcess()
        while var waiting = waits.next().map({ [$0] }) {
            while let next = waits.next(until: 0) { waiting.append(next) }
            waiting = registry.isOpen ? waiting.filter { registry.isInProgress($0.operation) } : []
            guard !waiting.isEmpty else { continue }
            let begin = threadTimeNow()
            let search = reader?.tasksWithoutContinuation(among: waiting.map(\.task), within: Self.longestTime) {
                registry.isOpen
            }
            let findings = waiting.filter { search?.ids.contains($0.task.id) == true }
            if let search, !findings.isEmpty {
                self.findings.withLock { all in
                    for finding in findings { all[finding.operation.number] = ([finding.task.id], search.bytes) }
                }
                found()
            }
            waits.waitForClose(until: monotonicNow() &+ (threadTimeNow() &- begin) &* Self.restFactor)
        }
    }
}
