import LinuxSupport
import StallReports
import StallSymbols
import Synchronization

/// Takes what the watchdog found and gives reports to the sinks, in two stages.
///
/// The first stage gives the report of a stall that lasts to the sinks at once, without names. The second stage, on a
/// thread of its own, looks up names and lines, decides what is reported, and replaces the first report. So neither the
/// watchdog nor the first report of a stall ever waits for symbols. Each sink has its own thread, too.
///
/// A stall's file exists from the threshold on, whatever becomes of the stall: whether it repeats another one is known
/// only at its end. A stall that is suppressed then loses its file. If the process dies before, the file stays.
final class Reporter: Sendable {
    /// How reports are made.
    struct Settings: Sendable {
        /// Called once on each of the two threads that make reports.
        var builder: @Sendable () -> ReportBuilder
        var reportsPerMinute = 30
        var reportsEveryRepeat = false
        var pathStyle = PathStyle.full
        var redact: (@Sendable (inout StallReport) -> Void)?
        var escalation: EscalationAction?
    }

    private let settings: Settings
    private let arrivals = RecordMailbox()
    private let unnamed = RecordMailbox()
    private let namingThread = Mutex<WorkerThread?>(nil)
    private let mustNotJoinNaming = Atomic<Bool>(false)
    private let finished = Atomic<Bool>(false)
    private let sinks: SinkSet
    private let notices: SinkEventRelay
    let counts: ReportCounts
    let streams = ReportStreams()

    /// - Throws: The error of a sink that cannot work.
    init(settings: Settings, sinks: [SinkFactory], counts: ReportCounts = ReportCounts()) throws(StallWatchError) {
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

    /// Leaves the newest state of a stall to be reported; never waits.
    func submit(_ record: StallRecord) {
        let isLost = arrivals.put(record)
        counts.add { counts in
            if isLost { counts.reportsLost += 1 }
            // Counted here, so that a report that is lost later is counted all the same.
            if record.state != .ongoing { counts.add(stallOf: record.duration, on: record.loop.label) }
        }
    }

    /// Gives the log, if there is one, a line about the monitor itself; never waits.
    func logNotice(_ message: String, _ metadata: @autoclosure () -> [String: String]) {
        guard sinks.areInterested(in: .notice) else { return }
        notices.post(.notice(message, metadata()))
    }

    /// Whether ``run()`` has handed out everything and is about to return.
    var isFinished: Bool { finished.load(ordering: .acquiring) }

    /// Says that the calling thread is about to stop the monitor.
    ///
    /// If it is one of the reporter's or a sink's, nothing waits for it.
    func willStopOnCurrentThread() {
        sinks.abandonCurrent()
        if namingThread.withLock({ $0?.isCurrent ?? false }) { mustNotJoinNaming.store(true, ordering: .releasing) }
    }

    /// Lets ``run()`` return once everything submitted has been reported.
    func close() {
        arrivals.close()
    }

    /// Releases what was made for a run that will not come.
    func discard() {
        streams.finish()
        notices.close()
    }

    /// Reports what is submitted until it is closed; then waits for the sinks, for a bounded time.
    ///
    /// This is the first stage. It starts the thread of the second.
    func run() {
        let thread = try? WorkerThread(name: "stallwatch-sym") { [self] in nameReports() }
        namingThread.withLock { $0 = thread }
        let builder = settings.builder()
        let finishing = finishing
        var seen: Set<String> = []
        while let record = arrivals.next() {
            if record.state != .ongoing {
                seen.remove(record.id)
            } else if seen.insert(record.id).inserted {
                sinks.submit(.updated(finishing.prepared(builder.rawReport(of: record))))
            }
            if unnamed.put(record) { counts.add { $0.reportsLost += 1 } }
        }
        unnamed.close()
        if let thread {
            if mustNotJoinNaming.load(ordering: .acquiring) { thread.detach() } else { thread.join() }
        } else {
            // Without memory for a thread, names come after the last stall.
            nameReports()
        }
        finishSinks()
        finished.store(true, ordering: .releasing)
    }

    /// The second stage, until the first closes its mailbox.
    private func nameReports() {
        let policy = RepeatPolicy(
            reportsPerMinute: settings.reportsPerMinute, reportsEveryRepeat: settings.reportsEveryRepeat
        )
        var namer = ReportNamer(builder: settings.builder(), policy: policy, finishing: finishing)
        while let record = unnamed.next(beforeWaiting: { namer.releaseMemory() }) { namer.report(record) }
    }

    private var finishing: ReportFinishing {
        ReportFinishing(settings: settings, sinks: sinks, notices: notices, counts: counts, streams: streams)
    }

    /// Waits until the sinks have got everything, for a bounded time.
    ///
    /// Harmless the second time.
    func finishSinks() {
        sinks.finish()
        discard()
    }
}
