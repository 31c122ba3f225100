import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

/// Reports the operations over their limit: the watchdog finds them, and a thread that the first of them starts inspects them.
final class OperationWatch: Sendable {
    /// The most operations that are overdue and have a report at the same time.
    static let maximumReports = 32
    /// How long a search is put off while a debugger holds the process, in nanoseconds (1 s).
    private static let debuggerPause: UInt64 = 1_000_000_000

    private struct OpenReport {
        var operation: OperationRegistry.Operation
        var record: StallRecord
        var search: ContinuationSearch.Result?

        init(_ operation: OperationRegistry.Operation, _ record: StallRecord) {
            (self.operation, self.record) = (operation, record)
        }

        /// Creates the report of an operation whose task is not read, because the monitor stops.
        init(unread operation: OperationRegistry.Operation) {
            self.init(operation, StallRecord(operation, at: monotonicNow()))
            record.operation = OverdueOperation(reason: "the monitor was stopped before its task could be read")
        }

        func record(_ state: StallState) -> StallRecord {
            var record = record
            record.state = state
            record.duration = max(monotonicNow() &- operation.began, record.duration)
            if let search { record.operation?.list.markSearched(search) }
            return record
        }
    }

    let registry = OperationRegistry()
    private let ignoresDebugged: Bool
    private let suppressed: SuppressionCounter
    private let submit: @Sendable (StallRecord) -> Void
    private let ring: @Sendable () -> Void
    /// The operations to inspect; none after others have ended, or something was found of them.
    private let overdue = Mailbox<[OperationRegistry.Operation]>()
    private let worker = Worker(name: "stallwatch-ops", namesFunctions: true)
    private let reports = Atomic<Int>(0)
    private let search: ContinuationSearch
    /// When a debugger last held the process, in monotonic nanoseconds.
    private let debugged = Atomic<UInt64>(0)

    init(
        ignoresDebugged: Bool, suppressed: SuppressionCounter, ring: @escaping @Sendable () -> Void,
        submit: @escaping @Sendable (StallRecord) -> Void
    ) {
        self.ignoresDebugged = ignoresDebugged
        self.suppressed = suppressed
        self.ring = ring
        self.submit = submit
        search = ContinuationSearch(for: registry) { [overdue] in overdue.put([], replacing: \.isEmpty) }
    }

    func begin(_ name: String, _ limit: Duration, _ context: StallContext?) -> Int {
        let limit = max(nanoseconds(limit), Self.minimumLimit)
        let (slot, isEarlier) = registry.begin(
            name, limit: limit, context: context, task: SwiftTask.currentAddress, at: monotonicNow())
        if isEarlier { ring() }
        return slot
    }

    private static let minimumLimit = nanoseconds(StallMonitor.minimumLimit)

    func end(_ slot: Int) {
        if registry.end(slot, at: monotonicNow) { overdue.put([], replacing: \.isEmpty) }
    }

    /// Ends the threads; operations that are overdue are reported as abandoned.
    ///
    /// Waits until a deadline in monotonic nanoseconds: a reading of all tasks may take 5 s, and ends alone.
    func stop(until deadline: UInt64) {
        registry.close()
        overdue.close()
        worker.finish(until: deadline)
        search.stop(until: deadline)
    }

    /// Finds the operations that are overdue, on the watchdog; returns when the next search is due, in monotonic nanoseconds.
    ///
    /// Earlier time than `countingFrom` does not count, and neither does the time in which a debugger holds the process.
    func findOverdue(at now: UInt64, countingFrom: UInt64) -> UInt64 {
        let due = registry.nextSearch
        guard due <= now else { return due }
        let debuggedAt = debugged.load(ordering: .relaxed)
        guard debuggedAt == 0 || now &- debuggedAt >= Self.debuggerPause else {
            return debuggedAt &+ Self.debuggerPause
        }
        if ignoresDebugged, isTraced(getpid()) {
            debugged.store(now, ordering: .relaxed)
            suppressed.add(.debugger)
            return now &+ Self.debuggerPause
        }
        let free = Self.maximumReports - reports.load(ordering: .relaxed)
        let found = registry.findOverdue(at: now, countingFrom: max(countingFrom, debuggedAt), atMost: free)
        for _ in 0..<found.omitted { suppressed.add(.rateLimit) }
        if !found.overdue.isEmpty {
            reports.wrappingAdd(found.overdue.count, ordering: .relaxed)
            overdue.put(found.overdue)
        }
        // Without the thread there is no report: each search tries again while operations wait for theirs.
        if reports.load(ordering: .relaxed) > 0 { _ = try? worker.start { [self] in run() } }
        return registry.nextSearch
    }

    private func run() {
        var inspector: OperationInspector?
        var open: [UInt64: OpenReport] = [:]
        while let overdue = overdue.next() {
            guard registry.isOpen else {
                for operation in overdue { open[operation.number] = OpenReport(unread: operation) }
                continue
            }
            if !overdue.isEmpty {
                if inspector == nil { inspector = OperationInspector() }
                report(overdue, inspector, &open)
            }
            reportEnds(&open)
            for number in takeFindings(&open) { if let found = open[number] { submit(found.record(.ongoing)) } }
        }
        reportEnds(&open)
        takeFindings(&open)
        for open in open.values { submit(open.record(.abandoned)) }
    }

    /// Reports operations that have just become overdue; those that have ended meanwhile without what they waited for.
    private func report(
        _ operations: [OperationRegistry.Operation], _ inspector: OperationInspector?,
        _ open: inout [UInt64: OpenReport]
    ) {
        let found = inspector?.inspect(operations.map(\.task))
        for (index, operation) in operations.enumerated() {
            var record = StallRecord(operation, at: monotonicNow())
            record.suppressed = suppressed.current
            record.captureMethods = inspector?.methods ?? []
            record.unwinder = inspector?.unwinder
            if !registry.isInProgress(operation) {
                record.operation = OverdueOperation(reason: "it ended before its task could be read")
            } else if let found {
                found[index].fill(&record, of: operation)
                if let task = found[index].awaiting { search.start(operation, task) }
            }
            open[operation.number] = OpenReport(operation, record)
            submit(record)
        }
    }

    /// Stores what was searched for in vain; returns the operations that it is about.
    @discardableResult
    private func takeFindings(_ open: inout [UInt64: OpenReport]) -> [UInt64] {
        let findings = search.takeFindings()
        for (number, result) in findings { open[number]?.search = result }
        return Array(findings.keys)
    }

    private func reportEnds(_ open: inout [UInt64: OpenReport]) {
        for (number, end) in registry.takeEnded(of: Array(open.keys)) {
            guard var ended = open.removeValue(forKey: number) else { continue }
            reports.wrappingSubtract(1, ordering: .relaxed)
            ended.record.state = .ended
            ended.record.duration = max(end &- ended.operation.began, ended.record.threshold)
            submit(ended.record)
        }
    }
}

extension StallRecord {
    /// The record of an operation that is over its limit, without what it waits for.
    init(_ operation: OperationRegistry.Operation, at now: UInt64) {
        let loop = Loop(
            label: operation.name, kind: .operation, turn: operation.number, nesting: 0, thread: nil)
        self.init(
            .overdue, loop, threshold: operation.limit, age: max(now &- operation.began, operation.limit))
        self.operation = OverdueOperation(reason: "the monitor could not make what it reads tasks with")
    }
}
