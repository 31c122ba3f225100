import LinuxSupport
import Synchronization

/// A request to the control socket that is being answered on a thread of its own.
final class ControlJob: Sendable {
    /// The client's connection; `nil`, and closed, once the job is finished.
    private let connection: Mutex<LineConnection?>
    private let wake = Semaphore()
    private let canceled = Atomic<Bool>(false)

    init(_ connection: LineConnection) { self.connection = Mutex(connection) }

    /// Whether the thread has done its work and is about to end.
    var isFinished: Bool { connection.withLock { $0 == nil } }

    /// Whether the monitor has been stopped meanwhile.
    var isCanceled: Bool { canceled.load(ordering: .acquiring) }

    /// Waits until a time, or until nothing waits for the answer any more.
    ///
    /// - Parameter deadline: The end of the wait, in monotonic nanoseconds.
    /// - Returns: Whether the answer is no longer needed: the client is gone, or the monitor has been stopped.
    func isOver(waitingUntil deadline: UInt64) -> Bool {
        wake.wait(until: deadline)
        return isCanceled || !(connection.withLock { $0 }?.isOpen ?? false)
    }

    /// Asks the job to end.
    func cancel() {
        canceled.store(true, ordering: .releasing)
        wake.post()
    }

    /// Sends the answer and closes the connection; the thread has done its work.
    ///
    /// - Parameter answer: The answer; `nil` if the client is gone.
    func finish(_ answer: [UInt8]?) {
        if let answer { connection.withLock { $0 }?.send(answer) }
        connection.withLock { $0 = nil }
    }
}
