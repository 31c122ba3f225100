import LinuxSupport
import StallReports
import Synchronization

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
    private let isDone = Atomic<Bool>(false)
    private let done = Semaphore()
    private let thread = Mutex<WorkerThread?>(nil)

    /// Creates a worker that does not run yet.
    init(_ channel: sending any HealthChannel, source: HealthSource, reading: @escaping Reading) {
        self.channel = OneShotTransfer(channel)
        self.source = source
        self.reading = reading
    }

    /// Starts the thread.
    ///
    /// - Parameter name: The thread's name, at most 15 bytes.
    /// - Throws: ``SystemError`` if the system refuses the thread.
    func start(name: String) throws(SystemError) {
        let started = try WorkerThread(name: name) { [self] in run() }
        thread.withLock { $0 = started }
    }

    /// Publishes a record soon; never waits.
    func wake() { arrival.post() }

    /// Publishes the last record and ends the thread, for a bounded time.
    ///
    /// A thread that takes longer is detached, and ends when its channel returns.
    func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        isStopping.store(true, ordering: .releasing)
        arrival.post()
        let deadline = monotonicNow() &+ Self.stopLimit
        while !isDone.load(ordering: .acquiring), monotonicNow() < deadline { done.wait(until: deadline) }
        if isDone.load(ordering: .acquiring) { thread.join() } else { thread.detach() }
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
        isDone.store(true, ordering: .releasing)
        done.post()
    }
}
