internal import CLinux
import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// Reports to supervisors whether the loops make progress, through a file and through the service manager's socket.
final class HealthReporter: Sendable {
    /// The number of the process whose monitor reports, as two could contradict each other; 0 for none, and inherited by
    /// fork(2).
    private static let process = Atomic<UInt32>(0)

    private let settings: StallMonitor.Configuration.Health
    private let source: HealthSource
    /// Created with the monitor: the program may change its directory before it starts it.
    private let file: OneShotTransfer<HealthFile>?
    private let workers = Mutex<[HealthWorker]>([])
    private let isStarted = Atomic<Bool>(false)

    init(_ settings: StallMonitor.Configuration.Health, source: HealthSource) throws(StallWatchError) {
        self.settings = settings
        self.source = source
        file = try settings.path.map { path throws(StallWatchError) in
            OneShotTransfer(try HealthFile(path: path, interval: settings.nanoseconds))
        }
    }

    /// Starts a thread for each channel; throws if another monitor of this process has such threads.
    func start(
        _ reporter: Reporter,
        environment: (String) -> String? = { getenv($0).map { String(cString: $0) } },
        reading: @escaping HealthWorker.Reading
    ) throws(StallWatchError) {
        let before = Self.process.load(ordering: .relaxed)
        let own = clinux_process_number()
        guard before != own,
            Self.process.compareExchange(expected: before, desired: own, ordering: .relaxed).exchanged
        else {
            throw StallWatchError(
                .invalidConfiguration,
                "another monitor of this process tells supervisors already: set health for one monitor only")
        }
        isStarted.store(true, ordering: .relaxed)
        do throws(StallWatchError) {
            if let file = file?.take() { try start(file, reporter, reading) }
            if settings.notifiesSystemd, let channel = serviceChannel(environment, reporter) {
                try start(channel, reporter, reading)
            }
        } catch {
            stop()
            throw error
        }
    }

    /// Publishes a record soon; never waits.
    func wake() {
        for worker in workers.withLock({ $0 }) { worker.wake() }
    }

    /// Makes each thread report the monitor as stopped, and end.
    func close() {
        for worker in workers.withLock({ $0 }) { worker.close() }
    }

    /// Does the same, and waits for the threads, until a deadline in monotonic nanoseconds, by default for a second.
    func stop(until deadline: UInt64 = monotonicNow() &+ SinkSet.otherTimeLimit) {
        close()
        for worker in workers.withLock({ exchange(&$0, with: []) }) { worker.finish(until: deadline) }
        if isStarted.exchange(false, ordering: .relaxed) { Self.process.store(0, ordering: .relaxed) }
    }

    private func start(
        _ channel: sending any HealthChannel, _ reporter: Reporter, _ reading: @escaping HealthWorker.Reading
    ) throws(StallWatchError) {
        let worker = HealthWorker(channel, source: source, reporter: reporter, reading: reading)
        try throwing(.systemFailure) { () throws(SystemError) in try worker.start() }
        workers.withLock { $0.append(worker) }
    }

    private func serviceChannel(
        _ environment: (String) -> String?, _ reporter: Reporter
    ) -> sending ServiceChannel? {
        guard let socket = environment("NOTIFY_SOCKET"), !socket.isEmpty else { return nil }
        do throws(SystemError) {
            let period = ServiceNotifier.watchdogPeriod(
                microseconds: environment("WATCHDOG_USEC"), process: environment("WATCHDOG_PID"))
            let feed = ServiceFeed(period: period, interval: settings.nanoseconds)
            let isMain = ServiceNotifier.isMain(["SYSTEMD_EXEC_PID", "WATCHDOG_PID"].map(environment))
            return ServiceChannel(try ServiceNotifier(socket: socket), feed: feed, isMain: isMain)
        } catch {
            reporter.logNotice("the service manager is not notified", ["reason": error.description])
            return nil
        }
    }
}

/// Runs one channel on a thread of its own, so that a stuck disk delays neither the monitor nor the other channel.
final class HealthWorker: Sendable {
    /// Returns the watchdog's answer; `nil` if there is none until the deadline, in monotonic nanoseconds.
    typealias Reading = @Sendable (_ deadline: UInt64) -> ProgressReading?

    /// The least time between two records of one channel, in nanoseconds: many short stalls cost no more than that.
    static let spacing: UInt64 = 50_000_000

    private let source: HealthSource
    private let reporter: Reporter
    private let channel: OneShotTransfer<any HealthChannel>
    private let reading: Reading
    private let wakes = Mailbox<Void>()
    private let worker: Worker

    init(
        _ channel: sending any HealthChannel, source: HealthSource, reporter: Reporter, reading: @escaping Reading
    ) {
        worker = Worker(name: channel.threadName)
        self.channel = OneShotTransfer(channel)
        self.source = source
        self.reporter = reporter
        self.reading = reading
    }

    func start() throws(SystemError) { try worker.start { [self] in run() } }

    func wake() { wakes.put((), replacing: { _ in true }) }

    /// Makes the thread publish the last record, and end.
    func close() { wakes.close() }

    /// Waits for the thread; one that takes too long is detached, and ends on its own.
    func finish(until deadline: UInt64) { worker.finish(until: deadline) }

    private func run() {
        guard let channel = channel.take() else { return }
        var isFailing = false
        while !wakes.isClosed {
            let begun = monotonicNow()
            let record = reading(begun &+ channel.answerLimit).map { source.record(of: $0) }
            let now = monotonicNow()
            report(&isFailing) { () throws(StallWatchError) in try channel.publish(record, at: now) }
            _ = wakes.next(until: channel.nextCheck(at: now))
            wakes.waitForClose(until: begun &+ Self.spacing)
            // Those that came meanwhile are answered by the next record.
            _ = wakes.next(until: 0)
        }
        report(&isFailing) { () throws(StallWatchError) in try channel.finish(source.stoppedRecord()) }
    }

    /// Counts a failure, and logs the first one in a row.
    private func report(_ isFailing: inout Bool, _ publish: () throws(StallWatchError) -> Void) {
        do throws(StallWatchError) {
            try publish()
            isFailing = false
        } catch {
            reporter.counts.add(error)
            if !isFailing {
                reporter.logNotice("a supervisor could not be notified", ["reason": error.description])
            }
            isFailing = true
        }
    }
}

/// A way to notify a supervisor, used only on the thread of its ``HealthWorker``.
protocol HealthChannel: AnyObject {
    /// The name of the channel's thread; at most 15 bytes.
    var threadName: String { get }

    /// The longest time to wait for the watchdog's answer, in nanoseconds.
    var answerLimit: UInt64 { get }

    /// Publishes a record, and may block; `nil`: the watchdog has given no answer.
    func publish(_ record: HealthRecord?, at now: UInt64) throws(StallWatchError)

    /// Returns the latest time of the next record, in monotonic nanoseconds.
    func nextCheck(at now: UInt64) -> UInt64

    /// Publishes that the monitor stops; may block.
    func finish(_ record: HealthRecord) throws(StallWatchError)
}
