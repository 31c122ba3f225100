import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// Tells supervisors whether the loops make progress, through a file and through the service manager's socket.
final class HealthReporter: Sendable {
    /// The process of which a monitor tells supervisors, as two could contradict each other; 0 for none.
    ///
    /// A child of fork(2) inherits its parent's.
    private static let process = Atomic<Int32>(0)

    private let settings: StallMonitor.Configuration.Health
    private let source: HealthSource
    private let workers = Mutex<[HealthWorker]>([])
    private let isStarted = Atomic<Bool>(false)

    /// Creates a reporter that tells nothing yet, and checks that the health file can be written.
    init(_ settings: StallMonitor.Configuration.Health, source: HealthSource) throws(StallWatchError) {
        self.settings = settings
        self.source = source
        if let path = settings.path { _ = try HealthFile(path: path, interval: settings.nanoseconds) { _, _ in } }
    }

    /// Starts a thread for each channel; throws if another monitor of this process tells supervisors, too.
    func start(
        _ reporter: Reporter,
        environment: (String) -> String? = { getenv($0).map { String(cString: $0) } },
        reading: @escaping HealthWorker.Reading
    ) throws(StallWatchError) {
        let before = Self.process.load(ordering: .relaxed)
        guard before != getpid(),
            Self.process.compareExchange(expected: before, desired: getpid(), ordering: .relaxed).exchanged
        else {
            throw StallWatchError(
                .invalidConfiguration,
                "another monitor of this process tells supervisors already: set health for one monitor only")
        }
        isStarted.store(true, ordering: .relaxed)
        do throws(StallWatchError) {
            if let path = settings.path {
                let file = try HealthFile(path: path, interval: settings.nanoseconds) { error, isFirst in
                    reporter.counts.add(error)
                    guard isFirst else { return }
                    reporter.logNotice("the health file could not be written", ["reason": error.description])
                }
                try start(HealthWorker(file, source: source, reading: reading), name: "stallwatch-hlt")
            }
            if settings.notifiesSystemd, let channel = serviceChannel(environment, reporter) {
                try start(HealthWorker(channel, source: source, reading: reading), name: "stallwatch-svc")
            }
        } catch {
            stop()
            throw error
        }
    }

    /// Tells what has changed, soon; never waits.
    func wake() {
        for worker in workers.withLock({ $0 }) { worker.wake() }
    }

    /// Reports the monitor as stopped and ends the threads, within ``HealthWorker/stopLimit``.
    func stop() {
        for worker in workers.withLock({ exchange(&$0, with: []) }) { worker.stop() }
        if isStarted.exchange(false, ordering: .relaxed) { Self.process.store(0, ordering: .relaxed) }
    }

    private func start(_ worker: HealthWorker, name: String) throws(StallWatchError) {
        try throwing(.systemFailure) { () throws(SystemError) in try worker.start(name: name) }
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
            return ServiceChannel(try ServiceNotifier(socket: socket), feed: feed) { error, isFirst in
                guard isFirst else { return }
                let reason = String(cString: strerror(error))
                reporter.logNotice("the service manager could not be notified", ["reason": reason])
            }
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
    /// The longest delay that a channel may cause to ``StallMonitor/stop()``, in nanoseconds.
    static let stopLimit: UInt64 = 1_000_000_000

    private let source: HealthSource
    private let channel: OneShotTransfer<any HealthChannel>
    private let reading: Reading
    private let arrival = Semaphore()
    private let isStopping = Atomic<Bool>(false)
    private let thread = Mutex<WorkerThread?>(nil)

    init(_ channel: sending any HealthChannel, source: HealthSource, reading: @escaping Reading) {
        self.channel = OneShotTransfer(channel)
        self.source = source
        self.reading = reading
    }

    /// Starts the thread, whose name has at most 15 bytes.
    func start(name: String) throws(SystemError) {
        let started = try WorkerThread(name: name) { [self] in run() }
        thread.withLock { $0 = started }
    }

    /// Publishes a record soon; never waits.
    func wake() { arrival.post() }

    /// Publishes the last record and ends the thread; one that takes too long is detached, and ends on its own.
    func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        isStopping.store(true, ordering: .releasing)
        arrival.post()
        thread.finish(until: monotonicNow() &+ Self.stopLimit)
    }

    private func run() {
        guard let channel = channel.take() else { return }
        while !isStopping.load(ordering: .acquiring) {
            let begun = monotonicNow()
            let record = reading(begun &+ channel.answerLimit).map { source.record(of: $0) }
            let due = channel.publish(record, at: monotonicNow())
            arrival.wait(until: due)
            while !isStopping.load(ordering: .acquiring), monotonicNow() < begun &+ Self.spacing {
                arrival.wait(until: begun &+ Self.spacing)
            }
        }
        channel.finish(source.stoppedRecord())
    }
}

/// A way to tell a supervisor whether the loops make progress, used only on the thread of its ``HealthWorker``.
protocol HealthChannel: AnyObject {
    /// The longest time to wait for the watchdog's answer, in nanoseconds.
    var answerLimit: UInt64 { get }

    /// Tells the supervisor, and may block; `nil`: no answer of the watchdog. Returns the latest time of the next call.
    func publish(_ record: HealthRecord?, at now: UInt64) -> UInt64

    /// Tells the supervisor that the monitor stops; may block.
    func finish(_ record: HealthRecord)
}
