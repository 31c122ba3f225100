/// The input of ``CauseRules``.
struct Evidence: Sendable {
    var split: TimeSplit
    /// Whether the kernel counted the time without a CPU; if not, some of the blocked time may be such time.
    var countsRunQueue = true
    /// The observations within the turn, ascending by time.
    var observations: [Observation] = []
    /// The turn's start, in monotonic nanoseconds.
    var start: UInt64
    var minorFaults: UInt64 = 0
    var majorFaults: UInt64 = 0
    var voluntarySwitches: UInt64 = 0
    var involuntarySwitches: UInt64 = 0
    /// The kernel's share of the CPU time, 0 to 1; `nil` if there was too little CPU time to measure it.
    var kernelShare: Double?
    /// The time that CPU quotas throttled the thread's cgroups, in nanoseconds.
    var throttled: UInt64 = 0
    /// The file of the last page that the thread waited for, if known.
    var pagedFile: String?

    /// The time that each observation stands for, in nanoseconds.
    var weights: [UInt64] {
        SampleWeights.weights(
            observations.map { observation in
                let from = observation.time - min(start, observation.time)
                let until = observation.until ?? observation.time
                return SampleWeights.Sighting(
                    from: from, to: max(until - min(start, until), from), isRunning: observation.activity == .running,
                    used: observation.used
                )
            },
            duration: split.duration
        )
    }
}
