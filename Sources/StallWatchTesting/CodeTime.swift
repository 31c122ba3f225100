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

    /// What the samples of a stall show.
    struct Evidence {
        /// Whether there is a stack.
        var hasStack = true
        /// The time for which samples show the thread blocked in the C library, in milliseconds.
        var blocked = 0.0
        /// Whether a pool stalled, which no single thread runs.
        var isOfPool = false
    }

    /// - Parameters:
    ///   - duration: The duration of the stall, in milliseconds.
    ///   - cause: How the stalled thread spent it; `nil` if that is unknown.
    ///   - evidence: What the samples show.
    init(duration: Double, cause: StallReport.Cause?, _ evidence: Evidence) {
        most = max(duration, 0)
        guard let cause else {
            // A pool without a busy worker has no code that delays it, and neither has a queue that no thread runs: its
            // thread waited for a CPU.
            least = evidence.hasStack && !evidence.isOfPool ? most : 0
            if evidence.isOfPool { most = 0 }
            return
        }
        let blocked = max(cause.blockedMilliseconds, 0)
        if evidence.isOfPool {
            // The monitor does not measure how long workers that compute were without a CPU.
            least = min(blocked, most)
            return
        }
        most -= min(max(cause.runQueueMilliseconds, 0), most)
        // Time blocked is certain if the cause or a sample shows a wait. A thread that is stopped for a capture counts as
        // blocked, too, until the capturing process has got a CPU. With eight busy loops on two CPUs, that was a quarter
        // of the time of code that never waits (measured).
        let isComputing = [.cpu, .cpuContention, .throttled].contains(cause.kind)
        let certain = max(cause.onCPUMilliseconds, 0) + (isComputing ? min(blocked, max(evidence.blocked, 0)) : blocked)
        // The parts leave out what came after the last observation. All of the uncertainty may be time without a CPU.
        least = max(min(certain, most) - max(cause.uncertaintyMilliseconds, 0), 0)
    }

    /// The time of a report's stall.
    init(_ report: StallReport) {
        var evidence = Evidence(hasStack: false, isOfPool: report.kind == .starvation)
        for (sample, share) in zip(report.samples, report.sampleShares) {
            guard let stack = sample.stack else { continue }
            evidence.hasStack = true
            let innermost = report.stacks[stack].first.flatMap { report.frames[$0].image }.map {
                report.images[$0].name
            }
            // A thread that waits is in a call of the C library; one that is stopped may be anywhere.
            guard sample.threadState == .blocked || sample.threadState == .uninterruptible,
                innermost?.hasPrefix("libc.") == true || innermost?.hasPrefix("libc-") == true
            else { continue }
            evidence.blocked += share * report.durationMilliseconds
        }
        self.init(duration: report.durationMilliseconds, cause: report.cause, evidence)
    }

    /// Returns a share of the time, 0 to 1.
    func part(_ share: Double) -> CodeTime {
        var part = self
        part.least *= share
        part.most *= share
        return part
    }
}
