import LinuxSupport
import StallReports
import StallSymbols
import Synchronization

/// Turns the watchdog's records into reports and delivers them to the sinks, in two stages.
///
/// The first stage delivers an ongoing stall's report at once, without names. The second stage, on its own thread,
/// looks up names and lines, decides whether the stall is reported, and replaces the first report. So neither the
/// watchdog nor a stall's first report waits for symbols. Each sink has its own thread, too.
///
/// Every stall's file exists from the threshold on, because only its end shows whether it repeats an earlier stall. If
/// the stall is suppressed then, its file is removed. If the process dies first, the file stays.
final class Reporter: Sendable {
    struct Settings: Sendable {
        /// Makes a builder; called once on each of the two threads that build reports.
        var builder: @Sendable () -> ReportBuilder
        var reportsPerMinute = 30
        var reportsEveryRepeat = false
        var pathStyle = PathStyle.full
        var redact: (@Sendable (inout StallReport) -> Void)?
        var escalation: EscalationAction?
        /// The file that receives the sentence of a stall that escalates; `nil` for none.
        var terminationLog: String?
        /// Receives each state of each stall, after the redaction, on a thread of the reporter; must not wait.
        var noted: (@Sendable (StallReport) -> Void)?
    }

    private let outlet: ReportOutlet
    private let arrivals = RecordMailbox()
    private let unnamed = RecordMailbox()
    private let namingThread = Mutex<WorkerThread?>(nil)
    private let mustNotJoinNaming = Atomic<Bool>(false)

    var counts: ReportCounts { outlet.counts }
    var streams: ReportStreams { outlet.streams }

    /// Creates a reporter and its sinks; starts no thread, and throws if a sink cannot work.
    init(settings: Settings, sinks: [SinkFactory]) throws(StallWatchError) {
        let (notices, counts, streams) = (SinkEventRelay(), ReportCounts(), ReportStreams())
        let sinks = try SinkSet(sinks, counts: counts, notices: notices)
        outlet = ReportOutlet(settings: settings, sinks: sinks, notices: notices, counts: counts, streams: streams)
        notices.open { delivery in
            sinks.submit(delivery)
            if case .recovered(let report) = delivery { _ = streams.yield(report) }
        }
    }

    func startSinks() throws(StallWatchError) {
        try outlet.sinks.start()
    }

    /// Queues the newest state of a stall; never waits.
    func submit(_ record: StallRecord) {
        if arrivals.put(record) { counts.add { $0.reportsLost += 1 } }
        guard record.state != .ongoing else { return }
        // Counted here, so that a report lost later is still counted. The names of operations may be many.
        counts.add(stallOf: record.duration, on: record.kind == .overdue ? nil : record.loop.label)
    }

    /// Whether a sink receives notices about the monitor itself.
    var hasLog: Bool { outlet.sinks.areInterested(in: .notice) }

    /// Sends a notice about the monitor itself to the log sink, if there is one; never waits.
    func logNotice(_ message: String, _ metadata: @autoclosure () -> [String: String]) {
        guard hasLog else { return }
        outlet.notices.post(.notice(message, metadata()))
    }

    var intervalLength: UInt64? { outlet.sinks.intervalLength }

    func submit(_ interval: [LoopStatistics]) {
        if !interval.isEmpty { outlet.sinks.submit(.interval(interval)) }
    }

    var unflushed: [String]? { outlet.sinks.unflushed }

    /// Sends the missing capabilities to the log sink, in one line, if reports lack something because of them.
    func logDegradation(_ capabilities: Capabilities) {
        guard let summary = capabilities.summary else { return }
        let missing = capabilities.missing.map(\.name.rawValue).joined(separator: ", ")
        logNotice("stall reports lack something here: \(summary)", ["missing": missing])
    }

    /// Makes a stop of the monitor from the calling thread not wait for it, if it is the reporter's or a sink's.
    func willStopOnCurrentThread() {
        outlet.sinks.abandonCurrent()
        if namingThread.withLock({ $0?.isCurrent ?? false }) { mustNotJoinNaming.store(true, ordering: .releasing) }
    }

    /// Makes ``run()`` return once it has reported all submitted records.
    func close() {
        arrivals.close()
    }

    /// Ends the streams and releases the sinks; also used when ``run()`` is never called.
    func discard() {
        streams.finish()
        outlet.notices.close()
    }

    /// Runs the first stage until ``close()``, and a thread with the second; then waits for the sinks, for a bounded
    /// time.
    func run() {
        let thread = try? WorkerThread(name: "stallwatch-sym") { [self] in nameReports() }
        namingThread.withLock { $0 = thread }
        let builder = outlet.settings.builder()
        var seen: Set<String> = []
        while let record = arrivals.next() {
            if record.state != .ongoing {
                seen.remove(record.id)
            } else if seen.insert(record.id).inserted {
                let report = outlet.prepared(builder.rawReport(of: record))
                outlet.settings.noted?(report)
                outlet.sinks.submit(.updated(report))
            }
            if unnamed.put(record) { counts.add { $0.reportsLost += 1 } }
        }
        unnamed.close()
        if let thread {
            if mustNotJoinNaming.load(ordering: .acquiring) { thread.detach() } else { thread.join() }
        } else {
            // The second stage's thread could not be started: symbolicate here, after the last stall.
            nameReports()
        }
        finishSinks()
    }

    /// Runs the second stage until the first closes its mailbox.
    private func nameReports() {
        let policy = RepeatPolicy(
            reportsPerMinute: outlet.settings.reportsPerMinute, reportsEveryRepeat: outlet.settings.reportsEveryRepeat
        )
        var namer = ReportNamer(builder: outlet.settings.builder(), policy: policy, outlet: outlet)
        // Memory is released of what can be read again.
        while let record = unnamed.next(beforeWaiting: namer.builder.symbolication.symbolicator.releaseMemory) {
            namer.report(record)
        }
    }

    /// Waits until the sinks have handled all records submitted so far, ``SinkSet/storeTimeLimit`` more at most;
    /// returns `false` then.
    func settle(until deadline: UInt64) -> Bool {
        // In this order: the first stage passes its record on before it takes the next one.
        while !arrivals.isIdle || !unnamed.isIdle {
            guard monotonicNow() < deadline else { return false }
            nap()
        }
        outlet.sinks.flush()
        return true
    }

    /// Waits until the sinks have received everything, once and for a bounded time.
    func finishSinks() {
        outlet.sinks.finish()
        discard()
    }
}

/// Passes the newest state of each stall from one thread to another.
final class RecordMailbox: Sendable {
    /// The maximum number of queued stalls; the oldest finished one over it is dropped, or else the oldest.
    static let capacity = 256

    private struct State {
        var records: [StallRecord] = []
        var isClosed = false
        /// Whether the reader still works on the record that it took last.
        var isInWork = false
    }
    private let state = Mutex(State())
    private let arrival = Semaphore()

    /// Queues the newest state of a stall, and never waits; returns whether a record was dropped to make room.
    func put(_ record: StallRecord) -> Bool {
        defer { arrival.post() }
        return state.withLock { state in
            if let waiting = state.records.firstIndex(where: { $0.id == record.id }) {
                state.records[waiting] = record
                return false
            }
            state.records.append(record)
            guard state.records.count > Self.capacity else { return false }
            state.records.remove(at: state.records.firstIndex { $0.state != .ongoing } ?? 0)
            return true
        }
    }

    /// Whether no record is queued, and the reader is done with all that it took.
    var isIdle: Bool { state.withLock { $0.records.isEmpty && !$0.isInWork } }

    /// Takes the oldest record, or waits for one; returns `nil` once the mailbox is closed and empty.
    func next(beforeWaiting idle: () -> Void = {}) -> StallRecord? {
        while true {
            let (record, isClosed) = state.withLock { state in
                state.isInWork = !state.records.isEmpty
                return (state.records.isEmpty ? nil : state.records.removeFirst(), state.isClosed)
            }
            if let record { return record }
            if isClosed { return nil }
            idle()
            arrival.wait()
        }
    }

    /// Makes ``next(beforeWaiting:)`` return `nil` once the mailbox is empty.
    func close() {
        state.withLock { $0.isClosed = true }
        arrival.post()
    }
}
