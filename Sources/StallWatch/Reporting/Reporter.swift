import StallReports
import LinuxSupport
internal import CLinux
import Glibc
import Synchronization

/// Names what the watchdog found, decides what is reported, and gives it to the sinks, on a thread of its own.
///
/// Symbolication may take long, and while it does, the watchdog has other loops to look after. It leaves the newest
/// state of each stall in a mailbox and goes on. Each sink then has its own thread, too.
///
/// A stall's file is there from the threshold on, whatever becomes of the stall: only at its end is it known which
/// other stalls it repeats. One that is held back loses its file then. If the process dies before, the file stays.
final class Reporter: Sendable {
    /// Stalls that may wait to be named; past it, the oldest that is over is dropped, and counted.
    static let mailboxCapacity = 256
    /// When naming took longer than this the last time, a report is first written without names: before its own names, and
    /// those of the report before it, are looked up.
    static let slowNaming: UInt64 = 20_000_000

    /// How reports are made.
    struct Settings: Sendable {
        /// Called once, on the reporter's thread.
        var builder: @Sendable () -> ReportBuilder
        var reportsPerMinute = 30
        var reportsEveryRepeat = false
        var pathStyle = PathStyle.full
        var redact: (@Sendable (inout StallReport) -> Void)?
        var escalation: Escalation.Action?
    }

    private struct Mailbox {
        var records: [StallRecord] = []
        var isClosed = false
    }
    private let mailbox = Mutex(Mailbox())
    private let arrival = Semaphore()
    private let finished = Atomic<Bool>(false)
    private let settings: Settings
    private let sinks: SinkSet
    private let notices: SinkEventRelay
    let counts: ReportCounts
    let streams = ReportStreams()

    /// - Throws: What a sink says that cannot work.
    init(settings: Settings, sinks: [ReportSink], counts: ReportCounts = ReportCounts()) throws(StallWatchError) {
        self.settings = settings
        self.counts = counts
        let notices = SinkEventRelay()
        self.notices = notices
        let sinks = try SinkSet(sinks, counts: counts, notices: notices)
        self.sinks = sinks
        let streams = streams
        notices.open { delivery in
            sinks.submit(delivery)
            if case .recovered(let report) = delivery { _ = streams.yield(report) }
        }
    }

    /// Starts the sinks' threads.
    func startSinks() throws(StallWatchError) {
        try sinks.start()
    }

    /// Leaves the newest state of a stall to be reported.
    ///
    /// Never waits for a disk.
    func submit(_ record: StallRecord) {
        let isLost = mailbox.withLock { mailbox in
            if let waiting = mailbox.records.firstIndex(where: { $0.id == record.id }) {
                mailbox.records[waiting] = record
                return false
            }
            mailbox.records.append(record)
            guard mailbox.records.count > Self.mailboxCapacity else { return false }
            mailbox.records.remove(at: mailbox.records.firstIndex { $0.state != .ongoing } ?? 0)
            return true
        }
        counts.add { counts in
            if isLost { counts.reportsLost += 1 }
            // Counted here, so that what is lost further on is counted all the same.
            if record.state != .ongoing { counts.add(stallOf: record.duration, on: record.loop.label) }
        }
        arrival.post()
    }

    /// Tells the log, if there is one, something about the monitor itself.
    ///
    /// Never waits.
    func logNotice(_ message: String, _ metadata: @autoclosure () -> [String: String]) {
        guard sinks.areInterested(in: .notice) else { return }
        notices.post(.notice(message, metadata()))
    }

    /// Whether ``run()`` has handed out everything and is about to return.
    var isFinished: Bool { finished.load(ordering: .acquiring) }

    /// Tells which thread stops the monitor: if it is a sink's, nobody will wait for it.
    func willStopOnCurrentThread() {
        sinks.abandonCurrent()
    }

    /// Lets ``run()`` return once everything submitted has been reported.
    func close() {
        mailbox.withLock { $0.isClosed = true }
        arrival.post()
    }

    /// Ends what was made for a run that will not come.
    func discard() {
        streams.finish()
        notices.close()
    }

    /// The thread's work: reports what is submitted, until it is closed; then waits for the sinks, but not for ever.
    func run() {
        let policy = RepeatPolicy(
            reportsPerMinute: settings.reportsPerMinute, reportsEveryRepeat: settings.reportsEveryRepeat
        )
        var work = Work(builder: settings.builder(), policy: policy)
        while true {
            let (records, isClosed) = mailbox.withLock { mailbox in
                defer { mailbox.records.removeAll() }
                return (mailbox.records, mailbox.isClosed)
            }
            for index in records.indices {
                giveWithoutNames(records[index...], &work)
                report(records[index], &work)
            }
            if records.isEmpty {
                if isClosed { break }
                work.builder.symbolication.symbolicator.releaseMemory()
                arrival.wait()
            }
        }
        finishSinks()
        finished.store(true, ordering: .releasing)
    }

    /// Waits until the sinks have got everything, but not for ever.
    ///
    /// Harmless the second time.
    func finishSinks() {
        sinks.finish()
        discard()
    }
}

// MARK: - On the reporter's thread

extension Reporter {
    /// What only the reporter's thread knows.
    private struct Work {
        let builder: ReportBuilder
        var policy: RepeatPolicy
        /// Stalls that last and have been reported as such.
        var open: Set<String> = []
        /// Those of which there is a report without names.
        var unnamed: Set<String> = []
        var escalated: Set<String> = []
        /// Where each store was when the last stall was over.
        var storesReached: [SinkWorker.Barrier] = []
        /// Whether naming a report may take so long that it should not wait for it.
        ///
        /// The first time, all symbols are read.
        var isNamingSlow = true
    }

    private func report(_ record: StallRecord, _ work: inout Work) {
        let isNew = work.open.insert(record.id).inserted
        let begun = monotonicNow()
        let builder = work.builder
        var report = builder.report(of: record) { unfinished in
            if record.state == .ongoing { sinks.submit(.updated(prepared(unfinished))) }
        } meanwhile: {
            if monotonicNow() &- begun > Self.slowNaming { work.isNamingSlow = true }
            giveWithoutNames(mailbox.withLock { $0.records[...] }, &work)
        }
        let fingerprint = Fingerprint(report).text
        work.isNamingSlow = monotonicNow() &- begun > Self.slowNaming
        report.fingerprint = fingerprint
        report.repeats = work.policy.repeats(of: fingerprint)

        guard record.state != .ongoing else {
            report = prepared(report)
            sinks.submit(isNew ? .began(report) : .updated(report))
            if record.isEscalated, work.escalated.insert(record.id).inserted { escalate(report) }
            return
        }
        work.open.remove(record.id)
        work.unnamed.remove(record.id)
        work.escalated.remove(record.id)
        var reason: SuppressionReason?
        switch work.policy.judge(fingerprint, at: monotonicNow()) {
        case .report(let repeats): report.repeats = repeats
        case .suppressed(let held): reason = held
        }
        if let reason { counts.add { $0.suppressed[reason] += 1 } }
        report = prepared(report)
        if isNew { sinks.submit(.began(report)) }
        sinks.submitFinal(.ended(report, reason), reached: &work.storesReached)
        guard reason == nil else { return }
        let dropped = streams.yield(report)
        if dropped > 0 { counts.add { $0.reportsDropped += dropped } }
    }

    /// Gives what is new and lasts to the sinks at once, where naming it, or what comes before it, takes long.
    private func giveWithoutNames(_ records: ArraySlice<StallRecord>, _ work: inout Work) {
        guard work.isNamingSlow else { return }
        for record in records where record.state == .ongoing && !work.open.contains(record.id) {
            guard work.unnamed.insert(record.id).inserted else { continue }
            sinks.submit(.updated(prepared(work.builder.unnamedReport(of: record))))
        }
    }

    /// The report as the sinks are to see it.
    private func prepared(_ report: StallReport) -> StallReport {
        var report = report
        let suppressed = counts.current.suppressed
        for reason in [SuppressionReason.repeated, .rateLimit] {
            report.monitor.suppressed[reason] = suppressed[reason]
        }
        report.shortenPaths(settings.pathStyle)
        if let redact = settings.redact, let fault = report.redact(with: redact) {
            notices.post(.notice("redacting made a stall report unusable: only its times were kept", ["reason": fault]))
        }
        return report
    }

    private func escalate(_ report: StallReport) {
        switch settings.escalation {
        case nil:
            break
        case .call:
            sinks.submit(.escalated(report))
        case .abort:
            notices.post(.notice("the process is aborted because it does not come back", ["reason": report.summary]))
            sinks.flush()
            // With every signal blocked, as here, the Swift runtime's crash handler makes a SIGSEGV of it (measured).
            _ = clinux_unblock_all_signals()
            abort()
        }
    }
}
