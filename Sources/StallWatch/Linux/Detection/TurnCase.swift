import LinuxSupport
import StackCapture

/// What is known of one turn of a loop, with samples from before the threshold in case it becomes a stall.
struct TurnCase {
    static let none = TurnCase(began: 0)

    /// When the turn began, in monotonic nanoseconds, which identifies it; 0 for no turn.
    let began: UInt64
    /// The moment from which the samples count the turn's age: its beginning, unless it was measured anew.
    private(set) var start: UInt64
    private(set) var samples: [StallRecord.Sample] = []
    /// Whether checks may stop the thread: not after a capture that failed, because an attempt takes up to 100 ms.
    private(set) var mayStop = true
    /// The thread of the samples that are captured as soon as it leaves the kernel.
    var pendingThread: Int32?
    /// The run without observers that the last poll found the loop in, if it did.
    var unobservedRun: UnobservedRun?
    /// Whether the turn was measured anew because it may have waited for an unknown time.
    var isUncertain = false
    /// Whether the turn is over the threshold, but no stall because a debugger holds its thread.
    var isDebugged = false
    var isSuppressed = false
    /// The stall that the turn is; `nil` below the threshold.
    var record: StallRecord?
    /// Follows the watched loops while the stall lasts.
    var leadUp: LeadUpReader?
    /// When the stall escalates, in monotonic nanoseconds; `nil` if it has escalated or never does.
    var escalation: UInt64?
    /// What the thread had used when it was last captured, or was found in the place of the last capture.
    private var lastReading: ThreadReading?

    init(began: UInt64) {
        self.began = began
        start = began
    }

    /// Drops the samples: the turn's age counts from `start` on.
    mutating func restart(from start: UInt64) {
        self.start = start
        samples = []
        mayStop = true
        lastReading = nil
    }

    struct Inspection {
        var sample: StallRecord.Sample
        /// Whether the thread has not run since the last sample.
        var isUnchanged = false

        /// Whether the capture may have stopped the thread.
        var mayHaveStopped: Bool {
            if isUnchanged { return false }
            guard case .success(let stack) = sample.stack else { return true }
            return stack.method != .read || !stack.isComplete
        }
    }

    /// Inspects the threads of the turn, and captures those that may have run since the last sample, or whose stack only
    /// a stop completes.
    ///
    /// A check asks `mayStop` before a capture whether the thread may be stopped, unless it competes for a CPU, which a
    /// stop would take from it. For a report, which has no such closure, it may always be stopped.
    mutating func inspect(
        _ target: CaptureTarget, _ context: WatchdogContext, _ diagnostician: inout StallDiagnostician,
        mayStop isPermitted: (() -> Bool)? = nil
    ) -> Inspection {
        var reading: ThreadReading?
        if case .thread(let thread) = target { reading = diagnostician.read(thread) }
        let competes = reading.flatMap { now in lastReading.map { now.competes(since: $0) } } ?? false
        func mayStop() -> Bool { isPermitted.map { !competes && $0() } ?? true }
        let age = context.now() &- start
        if let reading, let last = samples.last, samples.isCurrent(slices: reading.slices),
            !(last.lacksStop && mayStop())
        {
            samples.extendLast(to: age, used: reading.used)
            diagnostician.extend(to: reading)
            lastReading = reading
            return Inspection(sample: last, isUnchanged: true)
        }
        var sample = context.sample(target, age: age, mayStop: mayStop())
        if (try? sample.stack.get()) != nil { lastReading = reading }
        sample.used = reading.map { ($0.used, $0.used) }
        sample.slices = reading?.slices ?? 0
        return Inspection(sample: sample)
    }

    mutating func add(_ sample: StallRecord.Sample) {
        samples.add(sample)
        mayStop = (try? sample.stack.get()) != nil || sample.isPassingFailure || sample.isPending
    }

    /// Completes the samples that waited for the thread to leave the kernel: its stack was the same all the while.
    mutating func resolvePending(_ stack: Result<CapturedStack, CaptureFailure>, images: ImageList) {
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
        record?.samples = samples
    }

    /// Adds the sample of a check, if it has a stack or will have one; returns the stack if there is one already.
    mutating func add(_ inspection: Inspection, isEarly: Bool) -> CapturedStack? {
        let stack = try? inspection.sample.stack.get()
        guard stack != nil || inspection.sample.isPending else {
            mayStop = inspection.sample.isPassingFailure && mayStop
            return nil
        }
        var sample = inspection.sample
        sample.isValid = true
        sample.isEarly = isEarly
        add(sample)
        return stack
    }
}

/// A run of the loop without observers, in which the loop may wait for its own events.
struct UnobservedRun {
    /// The thread's number of waits when a poll last found it in the run; `nil` if that poll found the loop waiting.
    var waits: UInt64?

    /// Returns whether the loop may have waited since, now that its thread has waited `waits` times.
    func mayHaveWaited(_ waits: UInt64?) -> Bool { waits == nil || waits != self.waits }
}

extension CaptureTarget {
    /// The number of waits of the one thread; `nil` if it is not known.
    var voluntarySwitches: UInt64? {
        guard case .thread(let thread) = self else { return nil }
        return try? ThreadProbe(thread: thread, files: .status).read()?.voluntarySwitches
    }
}
