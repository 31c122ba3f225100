import LinuxSupport
import Synchronization

/// A request to the control socket that is being answered on a thread of its own.
final class ControlJob: Sendable {
    private let connection: LineConnection
    private let wake = Semaphore()
    private let canceled = Atomic<Bool>(false)
    private let finished = Atomic<Bool>(false)

    init(_ connection: LineConnection) { self.connection = connection }

    /// Whether the thread has done its work and is about to end.
    var isFinished: Bool { finished.load(ordering: .acquiring) }

    /// Whether the monitor has been stopped meanwhile.
    var isCanceled: Bool { canceled.load(ordering: .acquiring) }

    /// Waits until a time, or until nothing waits for the answer any more.
    ///
    /// - Parameter deadline: The end of the wait, in monotonic nanoseconds.
    /// - Returns: Whether the answer is no longer needed: the client is gone, or the monitor has been stopped.
    func isOver(waitingUntil deadline: UInt64) -> Bool {
        wake.wait(until: deadline)
        return isCanceled || !connection.isOpen
    }

    /// Asks the job to end.
    func cancel() {
        canceled.store(true, ordering: .releasing)
        wake.post()
    }

    /// Sends the answer.
    func send(_ answer: [UInt8]) { connection.send(answer) }

    /// Notes that the thread has done its work.
    func finish() { finished.store(true, ordering: .releasing) }
}
