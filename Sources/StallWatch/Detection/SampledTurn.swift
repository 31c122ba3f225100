import StackCapture

/// The samples of a turn in progress.
///
/// Before the threshold they are kept for the case that the turn becomes a stall.
struct SampledTurn {
    /// When the turn began, in monotonic nanoseconds; `nil` if no turn is sampled.
    var turnBegan: UInt64?
    /// When the turn's age begins to count.
    var start: UInt64 = 0
    private(set) var samples: [StallRecord.Sample] = []
    /// Whether checks may stop the thread: not after a capture that failed.
    ///
    /// An attempt takes up to 100 ms if the thread stays in the kernel.
    private(set) var mayStop = true

    init() {}

    init(turnBegan: UInt64, start: UInt64) {
        self.turnBegan = turnBegan
        self.start = start
    }

    /// An inspection of the thread of a turn.
    struct Inspection {
        /// The sample: a new one, or the last one.
        var sample: StallRecord.Sample
        /// Whether the thread has not run since the last sample.
        var isUnchanged = false

        /// Whether a capture that may stop the thread may have done so.
        var mayHaveStopped: Bool {
            guard !isUnchanged, case .success(let stack) = sample.stack else { return !isUnchanged }
            return stack.method != .read || !stack.isComplete
        }
    }

    /// Inspects the threads of the turn; captures none that has provably not run since the last sample.
    ///
    /// - Parameters:
    ///   - target: The threads.
    ///   - context: Takes the sample.
    ///   - diagnostician: Reads the thread.
    ///   - mayStop: Returns whether the thread may be stopped. Called only before a capture.
    /// - Returns: The new sample, or the last one if the thread has not run since.
    mutating func inspect(
        _ target: CaptureTarget, _ context: WatchdogContext, _ diagnostician: inout StallDiagnostician,
        mayStop: () -> Bool = { true }
    ) -> Inspection {
        var reading: ThreadReading?
        if case .thread(let thread) = target { reading = diagnostician.check(thread) }
        let age = context.now() &- start
        if let reading, let last = samples.last, samples.isCurrent(slices: reading.slices) {
            samples.extendLast(to: age, used: reading.used)
            diagnostician.extend(to: reading)
            return Inspection(sample: last, isUnchanged: true)
        }
        var sample = context.sample(target, age: age, mayStop: mayStop())
        sample.used = reading.map { ($0.used, $0.used) }
        sample.slices = reading?.slices ?? 0
        return Inspection(sample: sample)
    }

    /// Adds a sample of a stall.
    mutating func add(_ sample: StallRecord.Sample) {
        samples.add(sample)
        if case .success = sample.stack {
            mayStop = true
        } else {
            mayStop = sample.isPassingFailure || sample.isPending
        }
    }

    /// Completes the samples that waited for the thread to leave the kernel: its stack was the same all the while.
    mutating func resolvePending(_ stack: Result<CapturedStack, CaptureError>, images: ImageList) {
        for index in samples.indices where samples[index].isPending {
            samples[index].stack = stack
            samples[index].images = images
            guard let captured = (try? stack.get())?.capturedAt, captured > start else { continue }
            samples[index].seenUntil = max(samples[index].seenUntil, captured - start)
        }
    }

    /// Adds the sample of a check, if it has a stack or will have one.
    ///
    /// - Returns: The stack; `nil` if there is none yet, or the sample was dropped.
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

extension StallRecord.Sample {
    /// Whether the next attempt may well succeed: the thread moved, had no CPU, or would have had to be stopped.
    fileprivate var isPassingFailure: Bool {
        guard case .failure(let error) = stack else { return false }
        return [.notStopped, .moved, .notSampled].map(CaptureError.init).contains(error)
    }
}
