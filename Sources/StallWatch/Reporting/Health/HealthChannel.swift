import StallReports

/// A way to tell a supervisor whether the loops make progress.
///
/// Created on any thread, and used only on the thread of its ``HealthWorker``.
protocol HealthChannel: AnyObject {
    /// The longest time to wait for the watchdog's answer, in nanoseconds.
    var answerLimit: UInt64 { get }

    /// Tells the supervisor; may block.
    ///
    /// - Parameters:
    ///   - record: The record; `nil` if the watchdog has not answered in time.
    ///   - now: The time, in monotonic nanoseconds.
    /// - Returns: When to call again at the latest, in monotonic nanoseconds.
    func publish(_ record: HealthRecord?, at now: UInt64) -> UInt64

    /// Tells the supervisor that the monitor stops; may block.
    func finish(_ record: HealthRecord)
}
