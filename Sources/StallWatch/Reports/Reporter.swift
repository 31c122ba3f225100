internal import Logging
import Synchronization

/// Names, writes and hands out what the watchdog found, on a thread of its own.
///
/// Symbolication and disks may take long, and while they do, the watchdog has other loops to look after. It leaves the
/// newest state of each stall in a mailbox and goes on.
final class Reporter: Sendable {
    /// Stalls that may wait to be written; past it, the oldest that is over is dropped, and counted.
    static let mailboxCapacity = 256

    private struct Mailbox {
        var records: [StallRecord] = []
        var isClosed = false
    }
    private let mailbox = Mutex(Mailbox())
    private let arrival = Semaphore()
    private let counts = Mutex(StallMonitor.Statistics())
    private let builder: @Sendable () -> ReportBuilder
    private let directory: ReportDirectory?
    private let logger: Logger?
    let streams = ReportStreams()

    init(directory: ReportDirectory?, logger: Logger?, builder: @escaping @Sendable () -> ReportBuilder) {
        self.directory = directory
        self.logger = logger
        self.builder = builder
    }

    /// What has been reported so far.
    var statistics: StallMonitor.Statistics { counts.withLock { $0 } }

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
            mailbox.records.remove(at: mailbox.records.firstIndex { $0.state == .ended } ?? 0)
            return true
        }
        if isLost { counts.withLock { $0.reportsLost += 1 } }
        arrival.post()
    }

    /// Lets ``run()`` return once everything submitted has been reported.
    func close() {
        mailbox.withLock { $0.isClosed = true }
        arrival.post()
    }

    /// The thread's work: reports what is submitted, until it is closed.
    func run() {
        let builder = builder()
        while true {
            let (records, isClosed) = mailbox.withLock { mailbox in
                defer { mailbox.records.removeAll() }
                return (mailbox.records, mailbox.isClosed)
            }
            for record in records { deliver(builder.report(of: record, whenLate: write)) }
            if records.isEmpty {
                if isClosed { break }
                builder.symbolication.symbolicator.releaseMemory()
                arrival.wait()
            }
        }
        streams.finish()
    }

    private func deliver(_ report: StallReport) {
        write(report)
        guard report.state == .ended else { return }
        counts.withLock { $0.stalls += 1 }
        logger?.info("\(report.summary)", metadata: ["report": "\(report.id)"])
        let dropped = streams.yield(report)
        if dropped > 0 { counts.withLock { $0.reportsDropped += dropped } }
    }

    private func write(_ report: StallReport) {
        var failure: StallWatchError?
        do {
            try directory?.write(report)
        } catch {
            failure = error
        }
        guard let failure else { return }
        let isNews = counts.withLock { counts in
            counts.failedWrites += 1
            defer { counts.lastWriteError = failure }
            return counts.lastWriteError?.errno != failure.errno
        }
        if isNews { logger?.info("a stall report was not written", metadata: ["reason": "\(failure)"]) }
    }
}
