internal import CLinux
import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// Has reports named, decides which are reported, and delivers them to the sinks, on the second stage's thread.
struct ReportNamer {
    var names: NamingThread
    var policy: RepeatPolicy
    let outlet: ReportOutlet
    /// The ids of ongoing stalls that the sinks have received.
    private(set) var open: Set<String> = []
    private(set) var escalated: Set<String> = []
    /// One barrier per store, queued with the last finished stall.
    private(set) var storesReached: [SinkWorker.Barrier] = []

    mutating func report(_ draft: ReportDraft) {
        // Not before this one, which may be of a stall whose end was lost meanwhile.
        defer {
            for id in self.outlet.unnamedEnds.takeLost() {
                open.remove(id)
                escalated.remove(id)
            }
        }
        let (record, outlet, sinks) = (draft.record, outlet, outlet.sinks)
        let named = names.report(of: draft, unless: { outlet.limit.isOver }) { unfinished in
            guard record.state == .ongoing else { return }
            let report = outlet.prepared(unfinished)
            outlet.unnamedEnds.unlessKnown(record.id) { sinks.submit(.init(.updated, report)) }
        }
        guard var report = named ?? draft.report else { return }
        if named == nil { report.excuseMissingNames() }
        if let receive = record.receiver { return receive(report) }
        let isNew = !open.contains(record.id)
        let fingerprint = Fingerprint(report).text
        report.fingerprint = fingerprint

        guard record.state != .ongoing else {
            report = outlet.prepared(report)
            let delivery = Delivery(isNew ? .began : .updated, report)
            let goesOn = outlet.unnamedEnds.unlessKnown(record.id) { [report] in
                outlet.settings.storeState?(report)
                sinks.submit(delivery)
            }
            if goesOn { open.insert(record.id) }
            if record.isEscalated, escalated.insert(record.id).inserted { outlet.escalate(report) }
            return
        }
        open.remove(record.id)
        escalated.remove(record.id)
        end(report, fingerprint, isNew: isNew, stalls: max(record.missed, 1))
    }

    private mutating func end(_ named: StallReport, _ fingerprint: String, isNew: Bool, stalls: Int) {
        var report = named
        let decision = policy.decide(fingerprint, lasting: named.durationMilliseconds, at: monotonicNow())
        report.repeats = decision.repeats.count
        report.repeated = decision.repeats.durations
        let reason = decision.suppressed
        if let reason { outlet.counts.add { $0.suppressed[reason] += 1 } }
        report = outlet.prepared(report)
        outlet.settings.storeState?(report)
        outlet.unnamedEnds.remove(report.id)
        if isNew { outlet.sinks.submit(.init(.began, report)) }
        let final = Delivery(ended: report, suppressed: reason, stalls: stalls)
        outlet.sinks.submitFinal(final, reached: &storesReached) { [limit = outlet.limit] in limit.ofNames }
        if reason == nil { outlet.readers.yield(report) }
    }
}

struct ReportOutlet: Sendable {
    let settings: Reporter.Settings
    let redaction: Redaction?
    let limit: StopLimit
    let unnamedEnds = UnnamedEnds()
    let sinks: SinkSet
    let notices: SinkEventRelay
    let counts: ReportCounts
    let readers: ReportReaders

    /// Returns what the sinks receive: with counts, shortened and redacted; only the times if that makes it invalid.
    func prepared(_ report: StallReport) -> StallReport {
        var report = report
        let suppressed = counts.current.suppressed
        for reason in [SuppressionReason.repeated, .rateLimit] {
            // Operations that were too many are in the record's own count.
            report.monitor.suppressed[reason] += suppressed[reason]
        }
        report.shortenPaths(settings.pathStyle)
        if let fault = redaction?.apply(to: &report, until: limit.ofNames) {
            notices.post(
                .init(notice: "a stall report could not be redacted: only its times were kept", ["reason": fault]))
        }
        return report
    }

    /// Carries out the configured escalation, after the termination log, because a closure may end the process;
    /// `.abort` first waits for the sinks, for a bounded time.
    func escalate(_ report: StallReport) {
        if let log = settings.terminationLog { write(report, to: log) }
        switch settings.escalation {
        case nil:
            break
        case .call:
            sinks.submit(.init(.escalated, report))
        case .abort:
            sinks.submit(.init(.escalated, report))
            let notice = "aborting the process: a stall has lasted too long"
            notices.post(.init(notice: notice, ["reason": report.headline]))
            sinks.flush()
            // The creating thread may block SIGABRT, and Swift's crash handler then turns it into SIGSEGV (measured).
            _ = clinux_unblock_all_signals()
            abort()
        }
    }

    private func write(_ report: StallReport, to log: TerminationLog) {
        guard let failure = log.write(TerminationLog.message(report)) else { return }
        counts.add(StallWatchError(.unwritableReports, failure))
        notices.post(.init(notice: "the termination log could not be written", ["reason": failure.description]))
    }
}

/// Gives reports to the readers of ``StallMonitor/makeReports()`` on a thread of its own, which begins with the first
/// one: a program's executor may run a reader on the thread that resumes it, and keep that.
final class ReportReaders: Sendable {
    let streams = ReportStreams()
    private let reports = Mailbox<StallReport>()
    private let worker = Worker(name: "stallwatch-read")
    private let counts: ReportCounts

    init(_ counts: ReportCounts) { self.counts = counts }

    /// Queues a report if there is a reader; never waits.
    func yield(_ report: StallReport) {
        guard !streams.isEmpty, !reports.isClosed else { return }
        guard start() else { return deliver(report) }
        if reports.put(report, limit: ReportStreams.capacity) != nil { counts.add { $0.reportsDropped += 1 } }
    }

    /// Ends the sequences behind the reports so far; waits for that until a deadline in monotonic nanoseconds.
    func finish(until deadline: UInt64) {
        let hasThread = !streams.isEmpty && start()
        reports.close()
        if !hasThread { streams.finish() }
        worker.finish(until: deadline)
    }

    func abandonIfCurrent() { worker.abandonIfCurrent() }

    /// Returns `false` if the system refuses the thread.
    private func start() -> Bool { (try? worker.start { [self] in run() }) != nil }

    private func run() {
        while let report = reports.next() { deliver(report) }
        streams.finish()
    }

    private func deliver(_ report: StallReport) {
        let dropped = streams.yield(report)
        if dropped > 0 { counts.add { $0.reportsDropped += dropped } }
    }
}

/// The reports of stalls that have ended and have no names yet: their files say so without them, after a time.
final class UnnamedEnds: Sendable {
    private static let patience: UInt64 = 100_000_000
    private struct State {
        /// In the order of their ends.
        var waiting: [(due: UInt64, report: StallReport)] = []
        /// The ids of these, and of those that were delivered.
        var known: Set<String> = []
        /// Those of them whose reports with names were lost.
        var lost: [String] = []
    }
    private let state = Mutex(State())

    /// When the next one is due, in monotonic nanoseconds; `.max` without one.
    var due: UInt64 { state.withLock { $0.waiting.first?.due ?? .max } }

    func add(_ report: StallReport) {
        state.withLock { state in
            state.waiting.append((monotonicNow() &+ Self.patience, report))
            state.known.insert(report.id)
        }
    }

    func remove(_ id: String) {
        state.withLock { state in
            state.waiting.removeAll { $0.report.id == id }
            state.known.remove(id)
        }
    }

    /// Forgets a stall, whose report with names is lost, at the next ``takeLost()``: it may be being named.
    func lose(_ id: String) {
        state.withLock { state in
            guard state.known.contains(id) else { return }
            state.lost.append(id)
        }
    }

    func takeLost() -> [String] {
        state.withLock { state in
            state.known.subtract(state.lost)
            return exchange(&state.lost, with: [])
        }
    }

    /// Delivers a report of an ongoing stall, unless it has ended meanwhile: its file would say again that it goes on.
    @discardableResult
    func unlessKnown(_ id: String, _ deliver: () -> Void) -> Bool {
        state.withLock { state in
            guard !state.known.contains(id) else { return false }
            deliver()
            return true
        }
    }

    /// Delivers the ends that are due; never after a final report, which `remove` precedes.
    func deliver(through outlet: ReportOutlet) {
        while let next = state.withLock({ $0.waiting.first }), next.due <= monotonicNow() {
            let prepared = outlet.prepared(next.report)
            state.withLock { state in
                guard state.waiting.first?.report.id == next.report.id else { return }
                state.waiting.removeFirst()
                outlet.settings.storeState?(prepared)
                outlet.sinks.submit(.init(.updated, prepared))
            }
        }
    }
}

/// When ``StallMonitor/stop()`` no longer waits for what may never return; deadlines are `.max` until it begins.
final class StopLimit: Sendable {
    /// In monotonic nanoseconds.
    private let begun = Atomic<UInt64>(.max)

    /// Begins the stop, unless it has begun.
    func begin() { _ = begun.compareExchange(expected: .max, desired: monotonicNow(), ordering: .relaxed) }

    private func after(_ nanoseconds: UInt64) -> UInt64 {
        let (deadline, isOver) = begun.load(ordering: .relaxed).addingReportingOverflow(nanoseconds)
        return isOver ? .max : deadline
    }

    var ofInspections: UInt64 { after(400_000_000) }
    var ofNames: UInt64 { after(850_000_000) }
    var ofReports: UInt64 { after(950_000_000) }
    var ofOthers: UInt64 { after(SinkSet.otherTimeLimit) }
    var ofStores: UInt64 { after(SinkSet.storeTimeLimit) }
    /// Before that of the stop itself, so that what a store has not written is counted when the stop returns.
    var ofWrites: UInt64 { after(SinkSet.storeTimeLimit - 100_000_000) }

    /// Whether there is no time left for names.
    var isOver: Bool { monotonicNow() >= ofNames }
}
