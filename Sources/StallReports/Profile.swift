/// The duration and the rate of a profile.
package struct ProfilePlan: Sendable, Equatable {
    /// The permitted durations, in seconds.
    package static let seconds = 1...300
    /// The permitted rates, in samples per second.
    package static let hertz = 1...100
    /// The rate that a profile has unless it is given: 50 samples per second.
    package static let standardHertz = 50

    package let seconds: Int
    /// The mean number of samples per second.
    package let hertz: Int

    /// Creates a plan; `nil` for a number out of its range.
    package init?(seconds: Int, hertz: Int) {
        guard Self.seconds.contains(seconds), Self.hertz.contains(hertz) else { return nil }
        self.seconds = seconds
        self.hertz = hertz
    }
}

/// The answer to ``ControlRequest/profile(_:)``: what the threads of the loops were doing.
package struct ProfileAnswer: Codable, Sendable {
    package var durationMilliseconds: Double
    /// The mean number of samples per second that was asked for.
    package var hertz: Int
    /// The number of times that all loops were sampled.
    package var passes: Int
    /// The number of times that they were not sampled, because the profiler was late.
    package var missedPasses: Int
    /// The largest number of a pool's threads that were not sampled at one time, because there were too many.
    package var omittedThreads: Int
    /// The number of samples whose stacks were not kept, because there were too many different ones.
    package var unkeptStacks: Int
    /// The threads, sorted by the labels of their loops.
    package var threads: [Thread]

    package init(
        durationMilliseconds: Double, hertz: Int, passes: Int, missedPasses: Int, omittedThreads: Int,
        unkeptStacks: Int, threads: [Thread]
    ) {
        self.durationMilliseconds = durationMilliseconds
        self.hertz = hertz
        self.passes = passes
        self.missedPasses = missedPasses
        self.omittedThreads = omittedThreads
        self.unkeptStacks = unkeptStacks
        self.threads = threads
    }

    package struct Thread: Codable, Sendable {
        /// The samples, in a report of the kind ``StallReport/Kind/profile``.
        ///
        /// Successive equal samples are one, with ``StallReport/Sample/timesSeen``.
        package var report: StallReport
        /// The time on a CPU as the kernel has measured it, in milliseconds; `nil` if it is not known.
        package var onCPUMilliseconds: Double?
        /// The time in which the thread waited for a CPU as the kernel has measured it, in milliseconds; `nil` if it is
        /// not known.
        package var runQueueMilliseconds: Double?
        /// The time for which the samples kept the thread from running, in milliseconds.
        package var heldMilliseconds: Double
        /// The number of samples that were not taken, so that this time stays small; the samples before and after
        /// them count for them.
        package var skippedSamples: Int

        package init(
            report: StallReport, onCPUMilliseconds: Double?, runQueueMilliseconds: Double?, heldMilliseconds: Double,
            skippedSamples: Int
        ) {
            self.report = report
            self.onCPUMilliseconds = onCPUMilliseconds
            self.runQueueMilliseconds = runQueueMilliseconds
            self.heldMilliseconds = heldMilliseconds
            self.skippedSamples = skippedSamples
        }
    }
}

extension StallReport.Kind {
    /// The samples of a loop's thread, stalled or not; only in the answer to a ``ControlRequest/profile(_:)``.
    package static let profile = StallReport.Kind(rawValue: "profile")
}

extension StallReport.ThreadState {
    /// Waiting between two turns of its loop; only in the answer to a ``ControlRequest/profile(_:)``.
    package static let idle = StallReport.ThreadState(rawValue: "idle")
}
