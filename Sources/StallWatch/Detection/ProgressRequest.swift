import LinuxSupport
import Synchronization

/// A question to the watchdog, which answers at the end of its next pass.
final class ProgressRequest: Sendable {
    private let reading = Mutex<ProgressReading?>(nil)
    private let answered = Semaphore()

    /// Answers the request.
    ///
    /// - Parameter reading: The answer; `nil` if the watchdog ends.
    func answer(_ reading: ProgressReading?) {
        self.reading.withLock { $0 = reading }
        answered.post()
    }

    /// Waits for the answer until `deadline`, in monotonic nanoseconds; returns `nil` if there is none.
    func wait(until deadline: UInt64) -> ProgressReading? {
        answered.wait(until: deadline)
        return reading.withLock { $0 }
    }
}
