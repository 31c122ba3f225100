internal import CLinux
import Glibc
import LinuxSupport
import StallReports
import StallSymbols
import Synchronization

/// Turns the watchdog's records into reports and delivers them to the sinks, in two stages.
///
/// The first stage delivers an ongoing stall's report at once, without names. The second stage, on its own thread,
/// has names and lines looked up, decides whether the stall is reported, and replaces the first report. So neither the
/// watchdog nor a stall's first report waits for symbols, and its end only for a tenth of a second. Each sink has its own
/// thread, too.
///
/// Every stall's file exists from the threshold on, because only its end shows whether it repeats an earlier stall. If
/// the stall is suppressed then, its file is removed. If the process dies first, the file stays.
final class Reporter: Sendable {
    struct Settings: Sendable {
        /// What a sink, or the thread that names, may take longer than its limits, in nanoseconds: a test's threads may
        /// get no CPU for so long.
        var patience: UInt64 = 0
        /// Makes a builder; called once on each of the two threads that build reports.
        var builder: @Sendable () -> ReportBuilder
        var reportsPerMinute = 30
        var reportsEveryRepeat = false
        var pathStyle = PathStyle.full
        var redact: (@Sendable (inout StallReport) -> Void)?
        var escalation: EscalationAction?
        /// The file that receives the sentence of a stall that escalates; `nil` for none.
        var terminationLog: TerminationLog?
        /// Receives each state of each stall, after the redaction, on a thread of the reporter; must not wait.
        var storeState: (@Sendable (StallReport) -> Void)?
    }

    private let outlet: ReportOutlet
    let limit = StopLimit()
    private let arrivals = Mailbox<ReportDraft>()
    private let drafts = Mailbox<ReportDraft>()
    /// The ids of ongoing stalls that the first stage has met: each needs an end.
    private let seen = Mutex<Set<String>>([])
    private let naming = Worker(name: "stallwatch-send")

    var counts: ReportCounts { outlet.counts }
    var streams: ReportStreams { outlet.readers.streams }

    /// Creates a reporter and its sinks; starts no thread, and throws if a sink cannot work.
    init(settings: Settings, sinks: [SinkFactory]) throws(StallWatchError) {
        let (notices, counts) = (SinkEventRelay(), ReportCounts())
        let readers = ReportReaders(counts)
        let sinks = try SinkSet(sinks, counts: counts, notices: notices, extra: settings.patience)
        outlet = ReportOutlet(
            settings: settings, redaction: settings.redact.map { Redaction($0) }, limit: limit, sinks: sinks,
            notices: notices, counts: counts, readers: readers)
        notices.open { delivery in
            sinks.submit(delivery)
            if let report = delivery.report { readers.yield(report) }
        }
    }

    func startSinks() throws(StallWatchError) {
        try outlet.sinks.start()
    }

    /// Queues the newest state of a stall, of one with a receiver only the end; never waits.
    func submit(_ record: StallRecord) {
        guard record.receiver == nil || record.state != .ongoing else { return }
        queue(ReportDraft(record: record), in: arrivals) { queued in
            // So there are at most as many ends over the limit as stalls went on at one time.
            queued.firstIndex { draft in
                draft.record.state != .ongoing && seen.withLock { !$0.contains(draft.record.id) }
            } ?? Self.leastNeeded(of: queued)
        }
        guard record.state != .ongoing, record.receiver == nil else { return }
        // Counted here, so that a report lost later is still counted. The names of operations may be many.
        counts.add(
            stallOf: record.duration, on: record.kind == .overdue ? nil : record.loop.label, missed: record.missed)
    }

    /// Returns an ongoing stall, of which another state follows, if possible none that escalates.
    private static func leastNeeded(of queued: [ReportDraft]) -> Int? {
        queued.firstIndex { $0.record.state == .ongoing && !$0.record.isEscalated }
            ?? queued.firstIndex { $0.record.state == .ongoing }
    }

    /// The maximum number of queued stalls, over which one is dropped.
    static let capacity = 256

    /// Queues the newest state of a stall in place of an older one; counts and returns a final one that is lost for it.
    @discardableResult
    private func queue(
        _ draft: ReportDraft, in mailbox: Mailbox<ReportDraft>, dropping victim: ([ReportDraft]) -> Int?
    ) -> StallRecord? {
        let lost = mailbox.put(
            draft, limit: Self.capacity, replacing: { $0.record.id == draft.record.id }, dropping: victim)
        // Of an ongoing stall, another state follows.
        guard let record = lost?.record, record.state != .ongoing else { return nil }
        counts.add { $0.reportsLost += 1 }
        return record
    }

    var hasLog: Bool { outlet.sinks.receive(.notice) }

    /// Sends a notice about the monitor itself to the log sink, if there is one; never waits.
    func logNotice(_ message: String, _ metadata: @autoclosure () -> [String: String]) {
        guard hasLog else { return }
        outlet.notices.post(.init(notice: message, metadata()))
    }

    /// Says something about the monitor itself in the log, or on standard error if there is none.
    func announce(_ text: String) {
        if hasLog { return logNotice(text, [:]) }
        // The calling thread is the app's: neither a reader that has gone nor one that does not read may end or hold it.
        let line = "StallWatch: \(text.withoutControls)\n"
        clinux_say(line, line.utf8.count)
    }

    var intervalLength: UInt64? { outlet.sinks.intervalLength }

    func submit(_ interval: [LoopStatistics]) {
        if !interval.isEmpty { outlet.sinks.submit(.init(interval)) }
    }

    var unflushed: [String]? { outlet.sinks.unflushed }

    /// Sends the missing capabilities to the log sink, in one line, if reports lack something because of them.
    func logDegradation(_ capabilities: @autoclosure () -> Capabilities) {
        guard hasLog else { return }
        let capabilities = capabilities()
        guard let summary = capabilities.summary else { return }
        let missing = capabilities.missing.map(\.name.rawValue).joined(separator: ", ")
        logNotice("stall reports lack something here: \(summary)", ["missing": missing])
    }

    /// Makes a stop of the monitor from the calling thread not wait for it, if it is a sink's or runs a reader.
    func willStopOnCurrentThread() {
        outlet.sinks.abandonCurrent()
        outlet.readers.abandonIfCurrent()
    }

    /// Makes ``run()`` return once it has reported all submitted records.
    func close() {
        arrivals.close()
    }

    /// Ends the streams and releases the sinks; also used when ``run()`` is never called.
    func discard() {
        limit.begin()
        outlet.readers.finish(until: limit.ofOthers &+ outlet.settings.patience)
        outlet.notices.close()
    }

    /// Runs the first stage until ``close()``, and from the first stall on a thread with the second; then waits for the
    /// sinks, for a bounded time.
    func run() {
        var isNaming = false
        // Created for the first stall, like the second stage: a program that never stalls needs neither.
        lazy var builder = outlet.settings.builder()
        while true {
            outlet.unnamedEnds.deliver(through: outlet)
            guard var draft = arrivals.next(until: outlet.unnamedEnds.due) else {
                if arrivals.isDrained { break }
                continue
            }
            let (id, isOngoing) = (draft.record.id, draft.record.state == .ongoing)
            // Before anything that may take long, in which the end of a stall that was not seen may be lost.
            let isSeen = seen.withLock { seen in isOngoing ? !seen.insert(id).inserted : seen.remove(id) != nil }
            let unnamed = builder.draft(of: draft.record)
            draft.report = unnamed
            if !isOngoing {
                if isSeen { outlet.unnamedEnds.add(unnamed) }
            } else if !isSeen {
                let report = outlet.prepared(unnamed)
                outlet.settings.storeState?(report)
                outlet.sinks.submit(.init(.updated, report))
            }
            // What goes on has its file by now, and another state follows.
            let lost = queue(draft, in: drafts) { Self.leastNeeded(of: $0) ?? 0 }
            if let lost { outlet.unnamedEnds.lose(lost.id) }
            if !isNaming { isNaming = (try? naming.start { [self] in nameReports() }) != nil }
        }
        drafts.close()
        // If the system has refused the second stage's thread, name reports here, after the last stall.
        if isNaming { naming.finish(until: limit.ofReports) } else { nameReports() }
        finishSinks()
    }

    private func nameReports() {
        guard !drafts.isDrained else { return }
        let policy = RepeatPolicy(
            reportsPerMinute: outlet.settings.reportsPerMinute, reportsEveryRepeat: outlet.settings.reportsEveryRepeat
        )
        let patience = NamingThread.patience &+ outlet.settings.patience
        var namer = ReportNamer(
            names: NamingThread(patience: patience, outlet.settings.builder), policy: policy, outlet: outlet)
        while let draft = drafts.next(beforeWaiting: { namer.names.releaseMemory() }) { namer.report(draft) }
    }

    /// Whether no record is on its way to the sinks; in this order: the first stage passes one on before it takes the next.
    var isIdle: Bool { arrivals.isIdle && drafts.isIdle }

    /// Why outputs could not take a report now: see ``SinkSet/faults(stores:others:)``.
    func faults() -> [String] {
        let now = monotonicNow()
        return outlet.sinks.faults(stores: now &+ SinkSet.storeTimeLimit, others: now &+ SinkSet.otherTimeLimit)
    }

    /// Waits until the sinks have all records so far, up to ``SinkSet/storeTimeLimit`` more; returns `false` then.
    func settle(until deadline: UInt64) -> Bool {
        while !isIdle {
            guard monotonicNow() < deadline else { return false }
            nap()
        }
        outlet.sinks.flush()
        return true
    }

    func finishSinks() {
        limit.begin()
        outlet.sinks.finish(stores: limit.ofWrites, others: limit.ofOthers)
        discard()
    }
}

struct ReportDraft: Sendable {
    let record: StallRecord
    /// The report without names; `nil` until the first stage has made it.
    var report: StallReport?
}
