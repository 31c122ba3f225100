import StallReports

/// The part of a stall that the code took, without the time for which the machine kept it from running, in milliseconds.
///
/// The monitor splits a stall into time on a CPU, time blocked, and time ready to run without a CPU. The last part is the
/// machine's: other programs used the CPUs, the host took them away (*steal*, which the monitor counts as waiting for a
/// CPU), or the cgroup had used up its quota.
///
/// `throttledMilliseconds` is not subtracted. It is the time of the whole cgroup: what it kept this thread from running
/// is part of the time without a CPU already, and a thread that slept meanwhile would have slept in any case.
struct CodeTime: Sendable, Equatable {
    /// The time that the code took at least.
    var least: Double
    /// The time that the code took at most.
    var most: Double

    /// The time of an event that is known exactly.
    init(exactly milliseconds: Double) {
        (least, most) = (milliseconds, milliseconds)
    }

    /// - Parameters:
    ///   - duration: The duration of the stall, in milliseconds.
    ///   - cause: How the stalled thread spent it; `nil` if that is unknown.
    ///   - seenBlocked: The time for which samples show the thread blocked, in milliseconds.
    ///   - isOfPool: Whether a pool stalled, which no single thread runs.
    init(duration: Double, cause: StallReport.Cause?, seenBlocked: Double, isOfPool: Bool) {
        let duration = max(duration, 0)
        guard let cause else {
            // A pool without a busy worker has no code that delays it: its threads waited for a CPU.
            most = isOfPool ? 0 : duration
            least = most
            return
        }
        let blocked = min(max(cause.blockedMilliseconds, 0), duration)
        if isOfPool {
            // The monitor does not measure how long workers that compute were without a CPU.
            least = blocked
            most = duration
            return
        }
        most = duration - min(max(cause.runQueueMilliseconds, 0), duration)
        // All of the uncertainty may be time without a CPU. So may time blocked, if neither the cause nor a sample shows a
        // wait: a thread that is stopped for a capture counts as blocked until the capturing process has got a CPU. With
        // eight busy loops on two CPUs, that was a quarter of the time of code that never waits (measured).
        let isComputing = [.cpu, .cpuContention, .throttled].contains(cause.kind)
        let unseen = isComputing ? max(blocked - max(seenBlocked, 0), 0) : 0
        least = max(most - max(cause.uncertaintyMilliseconds, 0) - unseen, 0)
    }

    /// The time of a report's stall.
    init(_ report: StallReport) {
        var seenBlocked = 0.0
        for (sample, share) in zip(report.samples, report.sampleShares)
        where sample.threadState == .blocked || sample.threadState == .uninterruptible {
            seenBlocked += share * report.durationMilliseconds
        }
        self.init(
            duration: report.durationMilliseconds, cause: report.cause, seenBlocked: seenBlocked,
            isOfPool: report.kind == .starvation
        )
    }

    /// Returns a share of the time, 0 to 1.
    func part(_ share: Double) -> CodeTime {
        var part = self
        part.least *= share
        part.most *= share
        return part
    }
}
