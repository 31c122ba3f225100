import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

/// Watches the operations with a limit, on a thread that the first of them starts.
final class OperationWatch: Sendable {
    /// The most operations that are overdue and have a report at the same time.
    static let maximumReports = 32
    /// How long a look is put off while a debugger holds the process, in nanoseconds (1 s).
    private static let debuggerPause: UInt64 = 1_000_000_000
    /// The longest wait for the end of the thread, in nanoseconds: a reading of all tasks takes 5 s at most.
    private static let longestStop: UInt64 = 6_000_000_000

    private struct Open {
        var operation: OperationRegistry.Operation
        var record: StallRecord
        var search: ContinuationSearch.Result?

        /// Returns the record of an operation that has not ended.
        func record(_ state: StallState) -> StallRecord {
            var record = record
            record.state = state
            record.duration = max(monotonicNow() &- operation.began, record.duration)
            if let search { record.operation?.list.markSearched(search) }
            return record
        }
    }

    let registry = OperationRegistry()
    private let options: WatchdogOptions
    private let pauses: PauseState
    private let suppressed: SuppressionCounter
    private let submit: @Sendable (StallRecord) -> Void
    private let thread = Mutex<WorkerThread?>(nil)
    private let wake = Semaphore()
    private let search: ContinuationSearch

    init(
        options: WatchdogOptions, pauses: PauseState, suppressed: SuppressionCounter,
        submit: @escaping @Sendable (StallRecord) -> Void
    ) {
        self.options = options
        self.pauses = pauses
        self.suppressed = suppressed
        self.submit = submit
        search = ContinuationSearch(for: registry) { [wake] in wake.post() }
    }

    /// Begins an operation of the current task; returns its slot in the registry.
    func begin(_ name: String, _ limit: Duration, _ context: StallContext?) -> Int {
        let limit = max(nanoseconds(limit), Self.minimumLimit)
        let (slot, isEarlier) = registry.begin(
            name, limit: limit, context: context, task: SwiftTask.currentAddress, at: monotonicNow())
        if isEarlier {
            thread.withLock { thread in
                // Without the thread nothing is watched; the next operation tries again.
                if thread == nil, registry.isOpen {
                    thread = try? WorkerThread(name: "stallwatch-ops") { [self] in run() }
                }
            }
            wake.post()
        }
        return slot
    }

    private static let minimumLimit = nanoseconds(StallMonitor.minimumLimit)

    func end(_ slot: Int) {
        if registry.end(slot, at: monotonicNow) { wake.post() }
    }

    /// Ends the thread; operations that are overdue are reported as abandoned.
    func stop() {
        registry.close()
        wake.post()
        thread.withLock { $0.take() }?.finish(until: monotonicNow() &+ Self.longestStop)
        search.stop()
    }

    private func run() {
        var clocks = WatchdogClocks()
        var gaps = GapDetector()
        var inspector: OperationInspector?
        var open: [UInt64: Open] = [:]
        var countingFrom: UInt64 = 0
        var inspecting: UInt64 = 0
        while registry.isOpen {
            let due = registry.nextLook
            let reading = clocks.read(capturing: inspecting)
            if due > reading.monotonic {
                gaps.sleep(at: reading, until: due)
                // Its wake-up may have ended the pause for a debugger.
                if !search.hasFindings { wake.wait(until: due) }
                // A process that was stopped does not make an operation late.
                let awake = clocks.read(capturing: inspecting)
                if case .held(let reason) = gaps.wake(at: awake, firstBegin: nil, stolen: { 0 }) {
                    suppressed.add(reason)
                    countingFrom = awake.monotonic
                }
                if due > awake.monotonic, !search.hasFindings { continue }
            }
            let now = monotonicNow()
            if options.ignoresDebugged, isTraced(getpid()) {
                countingFrom = now
                suppressed.add(.debugger)
                wake.wait(until: now &+ Self.debuggerPause)
                continue
            }
            let found = registry.look(
                at: now, countingFrom: max(countingFrom, pauses.countingFrom(at: now)),
                atMost: Self.maximumReports - open.count)
            for _ in 0..<found.omitted { suppressed.add(.rateLimit) }
            if !found.overdue.isEmpty {
                if inspector == nil { inspector = OperationInspector() }
                report(found.overdue, inspector, &open)
                inspecting += monotonicNow() &- now
            }
            end(&open)
            for number in takeFindings(&open) { if let found = open[number] { submit(found.record(.ongoing)) } }
        }
        end(&open)
        takeFindings(&open)
        for open in open.values { submit(open.record(.abandoned)) }
    }

    /// Reports operations that have just become overdue; those that have ended meanwhile without what they waited for.
    private func report(
        _ operations: [OperationRegistry.Operation], _ inspector: OperationInspector?,
        _ open: inout [UInt64: Open]
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
            open[operation.number] = Open(operation: operation, record: record)
            submit(record)
        }
    }

    /// Notes what was searched for in vain; returns the operations that it is about.
    @discardableResult
    private func takeFindings(_ open: inout [UInt64: Open]) -> [UInt64] {
        let findings = search.takeFindings()
        for (number, result) in findings { open[number]?.search = result }
        return Array(findings.keys)
    }

    private func end(_ open: inout [UInt64: Open]) {
        for (number, end) in registry.takeEnded() {
            guard var ended = open.removeValue(forKey: number) else { continue }
            ended.record.state = .ended
            ended.record.duration = max(end &- ended.operation.began, ended.record.threshold)
            submit(ended.record)
        }
    }
}

extension StallRecord {
    /// The record of an operation that is over its limit, without what it waits for.
    init(_ operation: OperationRegistry.Operation, at now: UInt64) {
        let age = max(now &- operation.began, operation.limit)
        let startedAt = Timestamp(wallClockNanoseconds: wallClockNow() &- age)
        self.init(
            id: ReportIdentifier.make(at: startedAt), kind: .overdue,
            loop: Loop(
                label: operation.name.prefix(utf8: StallReport.Context.maximumText), kind: .operation,
                turn: operation.number, nesting: 0, thread: nil),
            threshold: operation.limit, startedAt: startedAt, watchdogLate: age - operation.limit, state: .ongoing,
            duration: age)
        self.operation = OverdueOperation(reason: "the monitor could not make what it reads tasks with")
    }
}
