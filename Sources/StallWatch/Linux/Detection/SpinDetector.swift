import LinuxSupport
import StackCapture

/// Decides when a loop spins: for 3 s, all its turns end within microseconds and none of its waits lasts (a pure value).
///
/// The loop's load and the CPU time of its thread are compared at intervals. There are two patterns:
///
/// - *Ready*: 5,000 turns or more a second, whose mean is 20 µs at most. A busy loop with a message in each turn looks the
///   same, so that needs a proof: a descriptor that is always readable while nobody reads it. Without one, the thread must
///   be on a CPU for 90 % of the time, its turns must take 5 µs at most, and its waits a tenth of the time or more.
/// - *Outside*: no turn begins or ends, the thread is in no run of the loop that an observer saw, and on a CPU for 90 % of
///   the time. The proof is that half of its stacks show `RunLoop.run(mode:before:)`, and none the function that this
///   calls if the mode has sources: it returns at once, and CFRunLoop calls no observer.
///
/// Measured on x86-64: a turn without work takes 1.2 to 8 µs. A descriptor that nobody drains gives 20,000 to 170,000
/// turns a second at 36 to 60 % of a CPU, because libdispatch watches it on another thread. A main-queue block that
/// submits itself gives 240,000 turns a second at 99 %.
struct SpinDetector {
    /// The shortest interval, in nanoseconds.
    static let interval: UInt64 = 250_000_000
    /// The time for which a loop must spin, in nanoseconds.
    static let duration: UInt64 = 3_000_000_000
    static let leastTurnsPerSecond: UInt64 = 5_000
    /// The largest mean of the turns, in nanoseconds, with and without a proof.
    static let longestTurn: (proven: UInt64, unproven: UInt64) = (20_000, 5_000)

    enum Pattern: Equatable {
        /// Something is always ready; `isCertain` if no work and no other thread can explain it.
        case ready(isCertain: Bool)
        case outside

        fileprivate func isSame(as other: Pattern) -> Bool { (self == .outside) == (other == .outside) }
    }

    /// What else is known of a pattern.
    enum Evidence { case refuted, none, proof }

    struct Reading: Equatable {
        var load: LoopLoad
        /// The CPU time of the loop's thread, in nanoseconds; `nil` if it is not known.
        var cpu: UInt64?
    }

    private(set) var last: Reading?
    /// The reading before.
    private var previous: Reading?
    /// The pattern of the last interval.
    private(set) var pattern: Pattern?
    /// The reading at which the pattern began.
    private(set) var start: Reading?
    /// When the pattern ended, in monotonic nanoseconds.
    private var brokenAt: UInt64?
    private var isReported = false
    private var isRefuted = false
    /// Whether an interval had neither a proof nor certainty.
    private var needsProof = false
    /// Whether the thread left the loop in the last interval, or was on a CPU outside: it may begin to spin there.
    private var isRestless = false
    private var samples = 0
    private var nextSample: UInt64 = 0

    /// When to poll at the latest, in monotonic nanoseconds; `nil` if the loop has to turn before anything can happen.
    func nextPoll(_ load: LoopLoad) -> UInt64? {
        guard let last else { return nil }
        let hasLeft = load.isOutside && Self.mayHaveLeft(last, load)
        return !isRefuted && (start != nil || isRestless || hasLeft) ? last.load.time &+ Self.interval : nil
    }

    private static func mayHaveLeft(_ earlier: Reading?, _ load: LoopLoad) -> Bool {
        earlier?.load.isOutside != true || earlier?.load.turns != load.turns
    }

    /// Whether a reading at `time` would end an interval.
    func isDue(at time: UInt64) -> Bool { last.map { time &- $0.load.time >= Self.interval } ?? true }

    /// Takes a reading that is due; earlier time than `countingFrom` does not count.
    mutating func take(_ reading: Reading, countingFrom: UInt64 = 0) {
        previous = last.flatMap { $0.load.time < countingFrom ? nil : $0 }
        last = reading
        let found = previous.flatMap { Self.pattern(from: $0, to: reading) }
        isRestless = reading.load.isOutside && (found == .outside || Self.mayHaveLeft(previous, reading.load))
        brokenAt = nil
        if let pattern, let start, found.map(pattern.isSame) != true {
            brokenAt = Self.end(of: pattern, from: start, previous ?? start, to: reading)
        }
        pattern = found
    }

    /// Returns what the last reading changes.
    mutating func decide(_ evidence: Evidence) -> PeriodAction? {
        guard let last else { return nil }
        let now = last.load.time
        if let end = brokenAt.take() {
            defer { (start, isReported, isRefuted, needsProof) = (nil, false, false, false) }
            return isReported ? .end(at: end) : .drop
        }
        guard let pattern else { return nil }
        guard let start else {
            // Of an interval on a CPU nearly all belongs to the pattern; of one with many turns any part may.
            (start, samples, nextSample) = (pattern == .outside ? previous ?? last : last, 0, 0)
            return nil
        }
        if isReported {
            guard now >= nextSample else { return nil }
        } else {
            if evidence == .refuted { isRefuted = true }
            if pattern != .ready(isCertain: true), evidence != .proof { needsProof = true }
            guard !isRefuted else { return .drop }
            if now &- start.load.time >= Self.duration {
                guard evidence == .proof || !needsProof else {
                    isRefuted = true
                    return .drop
                }
                isReported = true
                takeSample(at: now, since: start.load.time)
                return .begin
            }
        }
        takeSample(at: now, since: start.load.time)
        return .sample
    }

    private mutating func takeSample(at now: UInt64, since start: UInt64) {
        samples += 1
        guard isReported else { return }
        nextSample = SampleSchedule.standard.next(after: samples, age: now &- start).map { start &+ $0 } ?? .max
    }

    /// Returns the pattern of an interval.
    private static func pattern(from first: Reading, to last: Reading) -> Pattern? {
        let time = last.load.time &- first.load.time
        let turns = last.load.turns &- first.load.turns
        let cpu = first.cpu.flatMap { first in last.cpu.map { $0 &- min(first, $0) } }
        let isOnCPU = cpu.map { $0 >= time / 10 &* 9 } ?? false
        if turns == 0 {
            return first.load.isOutside && last.load.isOutside && isOnCPU ? .outside : nil
        }
        let idle = last.load.idle &- min(first.load.idle, last.load.idle)
        let busy = last.load.busy &- min(first.load.busy, last.load.busy)
        guard Double(turns) * 1e9 >= Double(leastTurnsPerSecond) * Double(time), busy / turns <= longestTurn.proven,
            // The rest is the app's own work between two runs of the loop.
            time &- min(idle &+ busy, time) <= time / 4
        else { return nil }
        return .ready(isCertain: isOnCPU && busy / turns <= longestTurn.unproven && idle >= time / 10)
    }

    /// Estimates when the pattern ended within an interval: by the turns or the CPU time in it.
    private static func end(of pattern: Pattern, from start: Reading, _ first: Reading, to last: Reading) -> UInt64 {
        let time = last.load.time &- first.load.time
        guard pattern != .outside else {
            let cpu = (last.cpu ?? 0) &- min(first.cpu ?? 0, last.cpu ?? 0)
            return first.load.time &+ min(cpu, time)
        }
        let turns = Double(max(first.load.turns &- start.load.turns, 1))
        let pace = Double(first.load.time &- start.load.time) / turns
        let part = Double(last.load.turns &- first.load.turns) * pace
        return first.load.time &+ UInt64(min(part, Double(time)))
    }
}

/// Reports the spins of one loop.
struct SpinSupervisor {
    private var detector = SpinDetector()
    private var period = LoadPeriod()
    private var descriptors = UndrainedDescriptors()
    private var activity: LoopActivity?

    /// The samples per interval: the thread is in a callout for a small part of a spin.
    private static let samplesPerInterval = 3
    /// The number of stacks that can refute an empty mode.
    private static let leastStacks = 9

    /// Reports a spin that begins or ends; returns when to poll at the latest, if that matters.
    mutating func poll(
        _ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext, countingFrom: UInt64
    ) -> UInt64? {
        guard detector.isDue(at: poll.load.time) else { return detector.nextPoll(poll.load) }
        var poll = poll
        if poll.target == .unknown, let thread = loop.source.knownThread { poll.target = .thread(thread) }
        guard case .thread(let thread) = poll.target else { return nil }
        let start = detector.start
        detector.take(
            .init(load: poll.load, cpu: ThreadClock.exact.nanoseconds(of: thread)), countingFrom: countingFrom)
        var action: PeriodAction?
        context.timeCheck { action = detector.decide(evidence(poll.runFunction, loop.source)) }
        if start == nil { descriptors = UndrainedDescriptors() }
        guard let action, let start else { return detector.nextPoll(poll.load) }
        if detector.pattern != nil { activity = describe(from: start) }
        let activity = activity ?? LoopActivity(from: start.load, to: start.load)
        period.carryOut(
            action, of: loop, poll, from: start.load, samples: Self.samplesPerInterval, context
        ) { _ in
            activity
        } record: {
            var record = StallRecord(
                .spinning, of: loop, poll, start: start.load, threshold: SpinDetector.duration, at: $0)
            record.startUncertainty = SpinDetector.interval
            return record
        }
        return detector.nextPoll(poll.load)
    }

    /// Reports a spin that still lasts as abandoned.
    func leave(_ context: WatchdogContext, at time: UInt64) {
        period.leave(context, since: detector.start?.load, at: time)
    }

    private mutating func evidence(
        _ runFunction: Range<UInt64>, _ source: any LoopSource
    ) -> SpinDetector.Evidence {
        guard detector.start != nil else { return .none }
        switch detector.pattern {
        case .ready(let isCertain)?:
            descriptors.look()
            if descriptors.found != nil { return .proof }
            return isCertain || !descriptors.areAllDrained ? .none : .refuted
        case .outside?:
            let stacks = period.stacks
            guard stacks.count >= Self.leastStacks else { return .none }
            let runs = stacks.count { stack in stack.frames.contains { runFunction.contains($0.address) } }
            let method = source.runMethod
            let calls = stacks.count { stack in stack.frames.contains { method.contains($0.address) } }
            guard runs == 0, calls > 0 else { return .refuted }
            return calls * 2 >= stacks.count ? .proof : .none
        case nil: return .none
        }
    }

    private func describe(from start: SpinDetector.Reading) -> LoopActivity? {
        guard let last = detector.last else { return nil }
        var activity = LoopActivity(from: start.load, to: last.load)
        if let first = start.cpu, let cpu = last.cpu {
            let share = Double(cpu &- min(first, cpu)) / Double(max(last.load.time &- start.load.time, 1))
            activity.cpuShare = min(share, 1)
        }
        activity.readyDescriptor = descriptors.found
        activity.isModeEmpty = detector.pattern == .outside
        return activity
    }
}
