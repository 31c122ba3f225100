import Glibc
import LinuxSupport
import StackCapture

/// What was seen of one turn of a loop, from before the threshold on in case the turn becomes a stall.
///
/// Samples and observations are two views of its entries: an entry has the stack, and what the thread was doing there.
struct TurnLog {
    static let none = TurnLog(began: 0)

    /// When the turn began, in monotonic nanoseconds, which identifies it; 0 for no turn.
    let began: UInt64
    /// The moment from which the entries count the turn's age: its beginning, unless it was measured anew.
    private(set) var start: UInt64
    private(set) var samples: [StallRecord.Sample] = []
    /// Whether checks may stop the thread: not after a capture that failed, because an attempt takes up to 100 ms.
    private(set) var mayStop = true
    /// Whether a check has stopped the thread, and the turn is not a stall.
    var wasStopped = false
    /// The thread of the samples that are captured as soon as it leaves the kernel.
    var pendingThread: Int32?
    /// The run without observers that the last poll found the loop in, if it did.
    var unobservedRun: UnobservedRun?
    /// Whether the turn was measured anew because it may have waited for an unknown time.
    var isUncertain = false
    /// Whether the turn is over the threshold, but no stall because a debugger holds its thread.
    var isDebugged = false
    var isSuppressed = false
    /// How often the first look at the turn was put off since the last one.
    var delays = 0
    /// What the thread had used when it was last captured, or was found in the place of the last capture.
    private var lastReading: ThreadReading?

    init(began: UInt64) {
        self.began = began
        start = began
    }

    var observations: [Observation] { samples.flatMap(\.observations) }

    mutating func restart(from start: UInt64) {
        self.start = start
        samples = []
        mayStop = true
        lastReading = nil
    }

    struct Inspection {
        var sample: StallRecord.Sample
        /// The reading that shows the thread in the sample's place; `nil` if the capture stopped it, or it has run meanwhile.
        var reading: ThreadReading?
        var isUnchanged = false

        var stack: CapturedStack? { try? sample.stack.get() }

        var mayHaveStopped: Bool {
            if isUnchanged { return false }
            guard let stack else { return true }
            return stack.method != .read || !stack.isComplete
        }
    }

    /// Captures the threads of the turn if they may have run since the last sample, or if only a stop completes its stack.
    ///
    /// `last` is the reading of the turn's thread from just before, with its open files. A check asks `mayStop` before a capture whether the thread
    /// may be stopped, unless it competes for a CPU, which a stop would take from it. For a report, which has no such
    /// closure, it may always be stopped.
    mutating func inspect(
        _ target: CaptureTarget, _ last: (probe: ThreadProbe, reading: ThreadReading)?, _ context: WatchdogContext,
        mayStop isPermitted: (() -> Bool)? = nil, mayWait: Bool = true
    ) -> Inspection {
        let reading = last?.reading
        let competes = reading.flatMap { now in lastReading.map { now.competes(since: $0) } } ?? false
        func mayStop() -> Bool { isPermitted.map { !competes && $0() } ?? true }
        let age = context.now() &- start
        if let reading, let previous = samples.last, samples.isCurrent(slices: reading.slices),
            !(previous.lacksStop && mayStop())
        {
            samples.extendLast(to: age, at: reading.time, used: reading.used)
            lastReading = reading
            return Inspection(sample: previous, reading: reading, isUnchanged: true)
        }
        var sample = context.sample(target, last, age: age, mayStop: mayStop(), mayWait: mayWait)
        let stack = try? sample.stack.get()
        if stack != nil { lastReading = reading }
        // The capture may have waited for a processor before or after the copy.
        if let copied = stack?.capturedAt, copied > start { sample.age = max(age, copied - start) }
        sample.used = reading.map { ($0.used, $0.used) }
        sample.slices = reading?.slices ?? 0
        return Inspection(sample: sample, reading: stack?.reading)
    }

    mutating func add(_ sample: StallRecord.Sample, _ observations: [Observation] = []) {
        samples.add(sample)
        // A stop that was not permitted was not tried.
        mayStop =
            (try? sample.stack.get()) != nil || sample.isPassingFailure || sample.isPending
            || !sample.wasStopPermitted && mayStop
        observe(observations)
    }

    mutating func observe(_ observations: [Observation]) {
        guard let last = samples.indices.last else { return }
        samples[last].observations += observations
    }

    mutating func markFailure(_ sample: StallRecord.Sample) { mayStop = sample.isPassingFailure && mayStop }

    /// Completes the samples that waited for the thread to leave the kernel: its stack was the same all the while.
    ///
    /// `explain` completes an observation of the running thread by that stack.
    mutating func resolvePending(
        _ stack: Result<CapturedStack, CaptureFailure>, images: ImageList,
        explain: (inout Observation, CapturedStack) -> Void
    ) {
        pendingThread = nil
        // A stack from before the turn is that of another one.
        let captured = (try? stack.get())?.capturedAt
        let isEarlier = captured.map { $0 < start } ?? false
        for index in samples.indices where samples[index].isPending {
            samples[index].stack = isEarlier ? .failure(.timedOut) : stack
            samples[index].images = images
            guard let captured, captured > start else { continue }
            samples[index].seenUntil = max(samples[index].seenUntil, captured - start)
        }
        guard case .success(let stack) = stack else { return }
        for sample in samples.indices {
            for index in samples[sample].observations.indices {
                let observation = samples[sample].observations[index]
                guard observation.activity == .running, observation.function == nil else { continue }
                explain(&samples[sample].observations[index], stack)
            }
        }
    }
}

struct UnobservedRun {
    /// The thread's number of waits when a poll last found it in the run; `nil` if that poll found the loop waiting.
    var waits: UInt64?

    /// Returns whether the loop may have waited since, now that its thread has waited `waits` times.
    func mayHaveWaited(_ waits: UInt64?) -> Bool { waits == nil || waits != self.waits }
}

extension CaptureTarget {
    /// The policy of the one thread if it goes before all threads of the usual ones (sched(7)); `nil` for others.
    var realTimePolicy: String? {
        guard case .thread(let thread) = self else { return nil }
        // SCHED_RESET_ON_FORK of sched.h is a flag beside the policy.
        switch sched_getscheduler(thread) & ~0x4000_0000 {
        case SCHED_FIFO: return "SCHED_FIFO"
        case SCHED_RR: return "SCHED_RR"
        case WorkerThread.deadlinePolicy: return "SCHED_DEADLINE"
        default: return nil
        }
    }

    /// The number of waits of the one thread; `nil` if it is not known.
    var voluntarySwitches: UInt64? {
        guard case .thread(let thread) = self else { return nil }
        return ThreadProbe.readBriefly(thread, .status)?.voluntarySwitches
    }
}
