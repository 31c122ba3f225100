import LinuxSupport
import StackCapture
import StallReports

struct Cause: Sendable {
    typealias Kind = StallReport.CauseKind

    var kind: Kind
    var confidence: StallReport.Confidence
    var evidence: Evidence
    var observation: Observation?
    /// An observation of another wait that stands for a third of the time or more.
    var other: Observation?
    /// The part of the blocked time that waits like that of ``observation`` stand for, in nanoseconds; `nil` for nearly all.
    var waitTime: UInt64?
    /// The share of the CPU time in which the call of ``observation`` ran; `nil` for none.
    var callShare: Double?
    var pressure: Pressure?
}

struct Evidence: Sendable {
    var split: TimeSplit
    /// Whether the kernel counted the time without a CPU; if not, some of the blocked time may be such time.
    var countsRunQueue = true
    /// The observations within the turn, ascending by time.
    var observations: [Observation] = []
    /// The turn's start, in monotonic nanoseconds.
    var start: UInt64
    /// Whether the thread has run since the last look: the turn is over.
    var goesOn = false
    var minorFaults: UInt64 = 0
    var majorFaults: UInt64 = 0
    var voluntarySwitches: UInt64 = 0
    var involuntarySwitches: UInt64 = 0
    /// The kernel's share of the CPU time, 0 to 1; `nil` if there was too little CPU time to measure it.
    var kernelShare: Double?
    /// The time that CPU quotas throttled the thread's cgroups, in nanoseconds: the sum over all CPUs.
    var throttled: UInt64 = 0
    /// Whether a quota that throttles the thread would be in ``throttled``.
    var seesQuotas = true
    /// The number of CPUs that are online.
    var processors = 1
    /// The number of CPUs that the thread may use; 0 if that is not known.
    var usableProcessors = 0
    /// The time that the host took from the most affected CPU since a sample saw the thread ready, in nanoseconds.
    var stolen: UInt64 = 0
    /// Those for the CPUs of a thread that a sample saw wait for one.
    var competitors: StallReport.Competitors?
    var pagedFile: String?

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

struct Observation: Sendable {
    /// The time of the observation, in monotonic nanoseconds.
    var time: UInt64
    /// The thread that it is of; 0 if that is not known.
    var thread: Int32 = 0
    /// When the thread was last seen in the same place; `nil` if it was seen there once.
    var until: UInt64?
    /// The thread's CPU and run-queue time at ``time`` and at ``until``; `nil` if it is not known.
    var used: (from: UInt64, to: UInt64)?
    /// The stack, as a number: equal for observations of the same place.
    var place: Int?
    var shown = Shown.nothing
    var activity: ThreadActivity
    var call: DescribedCall?
    /// For whom the call waits.
    var question: PeerQuestion?
    /// The innermost libc function with a known name of a running thread, if its innermost frame was in libc.
    var function: String?
    var lock: LockChain?
    /// The kernel function that the thread waited in.
    var waitChannel: String?
    /// The waiting thread's kernel functions, innermost first; `nil` without permission to read them.
    var kernelStack: [String]?

    enum Shown: Comparable {
        case nothing, part, all
    }

    /// Whether nothing that was seen tells this wait from another one.
    func isAlike(_ other: Observation) -> Bool {
        guard let call = activity.call, let otherCall = other.activity.call, !call.isRestarted, !otherCall.isRestarted
        else { return true }
        guard call.name == otherCall.name else { return false }
        if let target = self.call?.target, let otherTarget = other.call?.target {
            // A file may be deleted meanwhile, and a child get another name.
            let isSame =
                ["wait4", "waitid"].contains(call.name)
                ? call.argument(0) == otherCall.argument(0) && call.argument(1) == otherCall.argument(1)
                : target.hasPrefix(otherTarget) || otherTarget.hasPrefix(target)
            guard isSame else { return false }
        }
        guard let lock, let otherLock = other.lock else { return true }
        if let owner = lock.owners.first, let otherOwner = otherLock.owners.first {
            return lock.lock.address == otherLock.lock.address && owner.thread.id == otherOwner.thread.id
        }
        // A condition has two words, and the word of a lock whose owner is not known need not be its address.
        guard lock.lock.ownership == .none, lock.lock.kind != .condition, lock.lock.kind == otherLock.lock.kind else {
            return true
        }
        return lock.lock.address == otherLock.lock.address
    }

    func isSameCall(as other: Observation) -> Bool {
        guard let call = activity.call, let otherCall = other.activity.call else {
            // Without calls, only a reading that shows no stack may be of the same wait.
            return other.shown == .nothing && activity == other.activity && waitChannel == other.waitChannel
        }
        return call.name == otherCall.name && (call.argument(0) == otherCall.argument(0) || other.shown == .nothing)
    }
}

/// Divides a turn's time among what was seen of it: each sighting's own time, and a part of the time to its neighbors.
///
/// That is up to the midpoint. If the thread ran in one of two neighbors and was blocked in the other, the time that it
/// used between them belongs to the one that ran. The first also stands for the time from the turn's beginning, and the
/// last for the time to its end.
enum SampleWeights {
    struct Sighting {
        /// The turn's age at the beginning, in nanoseconds.
        var from: UInt64
        /// The turn's age at the end, in nanoseconds.
        var to: UInt64
        var isRunning = false
        /// The thread's CPU and run-queue time at both ends, in nanoseconds since its start; `nil` if it is not known.
        var used: (from: UInt64, to: UInt64)?
    }

    /// Divides a turn's duration among sightings, ascending by time: the results, in nanoseconds, add up to it.
    static func weights(_ sightings: [Sighting], duration: UInt64) -> [UInt64] {
        guard !sightings.isEmpty else { return [] }
        var weights: [UInt64] = []
        var begin: UInt64 = 0
        for (sighting, next) in zip(sightings, sightings.dropFirst()) {
            let end = max(min(boundary(sighting, next), duration), begin)
            weights.append(end - begin)
            begin = end
        }
        weights.append(duration - begin)
        return weights
    }

    private static func boundary(_ sighting: Sighting, _ next: Sighting) -> UInt64 {
        let span = next.from - min(sighting.to, next.from)
        guard sighting.isRunning != next.isRunning, let before = sighting.used?.to, let after = next.used?.from else {
            return sighting.to + span / 2
        }
        let used = min(after - min(before, after), span)
        return sighting.to + (sighting.isRunning ? used : span - used)
    }
}
