import LinuxSupport
import StackCapture
import StallReports

/// Decides when a loop spins: for 3 s, its turns are short and none of its waits lasts (a pure value).
///
/// The loop's load and the times of its thread are compared at intervals. There are two patterns:
///
/// - *Ready*: 3,000 turns or more a second, whose mean is 120 µs at most. A busy loop with a message in each turn looks the
///   same, so that needs a proof: a descriptor that is always readable while the app does not read it. Without one, the
///   loop must make 5,000 turns a second of 5 µs at most, its thread must be runnable for 90 % of the whole time, and its
///   waits must be a tenth of the time or more.
/// - *Outside*: no turn begins or ends, the thread is in no run of the loop that an observer saw, and is runnable for three
///   quarters of each interval. The proof is that a third of the looks show `RunLoop.run(mode:before:)`, and none the
///   function that this calls if the mode has sources: it returns at once, and CFRunLoop calls no observer.
///
/// A pattern that is not proven after 3 s is examined again at intervals that grow with its age; one of turns that is refuted,
/// 10 s later, because a loop with many messages may begin to spin without a pause.
///
/// Measured on x86-64: a turn without work takes 1.2 to 8 µs. A descriptor that is not drained gives 20,000 to 170,000
/// turns a second at 36 to 60 % of a CPU, because libdispatch watches it on another thread; 7,000 to 23,000 turns of 18 to
/// 34 µs in a debug build whose CPUs are shared with a compiler; 4,000 of 60 to 70 µs in a virtual machine while that thread is
/// on another CPU, which each turn has to wake. A main-queue block that submits itself gives 240,000 turns a second at 99 %.
struct SpinDetector {
    /// The shortest interval, in nanoseconds.
    static let interval: UInt64 = 250_000_000
    static let duration: UInt64 = 3_000_000_000
    static let leastTurns: (proven: UInt64, unproven: UInt64) = (3_000, 5_000)
    static let longestTurn: (proven: UInt64, unproven: UInt64) = (120_000, 5_000)
    /// The part of its age after which a pattern without a proof is examined again.
    private static let askingPart: UInt64 = 16
    /// The time after which refuted turns are examined again, in nanoseconds.
    static let refutationLasts: UInt64 = 10_000_000_000
    /// The number of looks that can refute an empty mode.
    private static let leastLooks = 9

    enum Pattern: Equatable { case ready, outside }

    enum Evidence { case refuted, none, proof }

    struct Reading: Equatable {
        var load: LoopLoad
        /// The CPU time of the loop's thread, in nanoseconds; `nil` if it is not known.
        var cpu: UInt64?
        /// The time for which the thread waited for a CPU, in nanoseconds; 0 if it is not known.
        var runQueue: UInt64 = 0

        /// The time for which the thread was runnable since an earlier reading, in nanoseconds.
        fileprivate func runnable(since first: Reading) -> UInt64 {
            guard let cpu, let before = first.cpu else { return 0 }
            return cpu &- min(before, cpu) &+ runQueue &- min(first.runQueue, runQueue)
        }

        /// The part of the runnable time since an earlier reading in which the thread was on a CPU.
        fileprivate func shareOnCPU(since first: Reading) -> Double {
            let waited = runQueue &- min(first.runQueue, runQueue)
            return 1 - Double(waited) / Double(max(runnable(since: first), waited, 1))
        }
    }

    private(set) var last: Reading?
    private var previous: Reading?
    private(set) var pattern: Pattern?
    private(set) var start: Reading?
    /// When the pattern ended, in monotonic nanoseconds.
    private var brokenAt: UInt64?
    private var isReported = false
    /// Until when a pattern is not examined, in monotonic nanoseconds; `nil` if it is not refuted.
    private var refutedUntil: UInt64?
    /// When the next sample of a reported spin, or the next question for a proof, is due.
    private var nextCheck: UInt64 = 0
    private var isRestless = false
    private var samples = 0

    /// When to poll at the latest, in monotonic nanoseconds; `nil` if the loop has to turn before anything can happen.
    func nextPoll(_ load: LoopLoad) -> UInt64? {
        guard let last else { return nil }
        let hasLeft = load.isOutside && Self.mayHaveLeft(last, load)
        return refutedUntil == nil && (start != nil || isRestless || hasLeft) ? last.load.time &+ Self.interval : nil
    }

    private static func mayHaveLeft(_ earlier: Reading?, _ load: LoopLoad) -> Bool {
        earlier?.load.isOutside != true || earlier?.load.turns != load.turns
    }

    /// Whether the interval is over, and the loop may spin: it has turned since the last reading, or is outside.
    func isDue(_ load: LoopLoad) -> Bool {
        guard let last else { return true }
        let maySpin = start != nil || isRestless || load.isOutside || load.turns != last.load.turns
        return maySpin && load.time &- last.load.time >= Self.interval
    }

    var isAsking: Bool {
        guard let last, start != nil, pattern != nil else { return false }
        return !isReported && refutedUntil == nil && brokenAt == nil && last.load.time >= nextCheck
    }

    /// Whether no work and no other thread can explain the time since the pattern began.
    var isCertain: Bool {
        guard let last, let start, pattern == .ready else { return false }
        let time = last.load.time &- start.load.time
        let turns = last.load.turns &- start.load.turns
        return last.runnable(since: start) >= time / 10 &* 9 && last.load.idleTime(since: start.load) >= time / 10
            // Waits for a CPU fall into turns, too.
            && Double(last.load.busyTime(since: start.load)) * last.shareOnCPU(since: start)
                <= Double(turns &* Self.longestTurn.unproven)
            && Self.reach(Self.leastTurns.unproven, turns, in: time)
    }

    /// Adds a reading that is due; earlier time than `countingFrom` does not count.
    mutating func add(_ reading: Reading, countingFrom: UInt64 = 0) {
        previous = last.flatMap { $0.load.time < countingFrom ? nil : $0 }
        last = reading
        let found = previous.flatMap { Self.pattern(from: $0, to: reading) }
        isRestless = reading.load.isOutside && (found == .outside || Self.mayHaveLeft(previous, reading.load))
        brokenAt = nil
        if let pattern, let start, found != pattern {
            brokenAt = Self.end(of: pattern, from: start, previous ?? start, to: reading)
        }
        pattern = found
        if let until = refutedUntil, brokenAt == nil, reading.load.time >= until {
            (start, refutedUntil) = (nil, nil)
        }
    }

    mutating func decide(_ evidence: Evidence) -> PeriodAction? {
        guard let last else { return nil }
        let now = last.load.time
        if let end = brokenAt.take() {
            defer { (start, isReported, refutedUntil) = (nil, false, nil) }
            return isReported ? .end(at: end) : .drop
        }
        guard let pattern else { return nil }
        guard let start else {
            // Of an interval on a CPU nearly all belongs to the pattern; of one with many turns any part may.
            (start, samples, nextCheck) = (pattern == .outside ? previous ?? last : last, 0, 0)
            return nil
        }
        let age = now &- start.load.time
        if isReported {
            guard now >= nextCheck else { return nil }
            return countSample(.sample, since: start.load.time, age: age)
        }
        guard isAsking else { return nil }
        if evidence == .refuted {
            refutedUntil = pattern == .ready ? now &+ Self.refutationLasts : .max
            return .drop
        }
        guard age >= Self.duration else { return .sample }
        guard evidence == .proof || isCertain else {
            nextCheck = now &+ age / Self.askingPart
            return .sample
        }
        isReported = true
        return countSample(.begin, since: start.load.time, age: age)
    }

    private mutating func countSample(_ action: PeriodAction, since start: UInt64, age: UInt64) -> PeriodAction {
        samples += 1
        nextCheck = SampleSchedule.standard.next(after: samples, age: age).map { start &+ $0 } ?? .max
        return action
    }

    private static func pattern(from first: Reading, to last: Reading) -> Pattern? {
        let time = last.load.time &- first.load.time
        let turns = last.load.turns &- first.load.turns
        if turns == 0 {
            let isRunnable = last.runnable(since: first) >= time / 4 &* 3
            return first.load.isOutside && last.load.isOutside && isRunnable ? .outside : nil
        }
        let busy = last.load.busyTime(since: first.load)
        guard reach(leastTurns.proven, turns, in: time), busy / turns <= longestTurn.proven,
            // The rest is the app's own work between two runs of the loop.
            time &- min(last.load.idleTime(since: first.load) &+ busy, time) <= time / 4
        else { return nil }
        return .ready
    }

    /// Returns what stacks outside of a run tell of an empty mode, each with the number of looks that met it: a thread that
    /// turns for nothing may be met in the same place many times.
    static func evidence(
        of stacks: [(stack: CapturedStack, timesSeen: Int)], runMethod: Range<UInt64>, runFunction: Range<UInt64>
    ) -> Evidence {
        func looks(in function: Range<UInt64>) -> Int {
            stacks.reduce(0) { sum, seen in
                seen.stack.frames.contains { function.contains($0.address) } ? sum + seen.timesSeen : sum
            }
        }
        let all = stacks.reduce(0) { $0 + $1.timesSeen }
        guard all >= leastLooks else { return .none }
        let calls = looks(in: runMethod)
        guard calls > 0, looks(in: runFunction) == 0 else { return .refuted }
        return calls * 3 >= all ? .proof : .none
    }

    private static func reach(_ perSecond: UInt64, _ turns: UInt64, in time: UInt64) -> Bool {
        Double(turns) * 1e9 >= Double(perSecond) * Double(time)
    }

    /// Estimates when the pattern ended within an interval: by the turns or the CPU time in it.
    private static func end(of pattern: Pattern, from start: Reading, _ first: Reading, to last: Reading) -> UInt64 {
        let time = last.load.time &- first.load.time
        guard pattern != .outside else { return first.load.time &+ min(last.runnable(since: first), time) }
        let turns = Double(max(first.load.turns &- start.load.turns, 1))
        let pace = Double(first.load.time &- start.load.time) / turns
        let part = Double(last.load.turns &- first.load.turns) * pace
        return first.load.time &+ UInt64(min(part, Double(time)))
    }
}

struct SpinSupervisor {
    private var detector = SpinDetector()
    private var period = LoadPeriod()
    private var descriptors = UndrainedDescriptors()
    private var activity: StallReport.Activity?

    /// The samples per interval: the thread is in a callout for a small part of a spin.
    private static let samplesPerInterval = 3

    /// Reports a spin that begins or ends, by `probe`, its thread's files; returns when to poll at the latest, if ever.
    mutating func poll(
        _ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext, countingFrom: UInt64,
        _ probe: inout ThreadProbe?
    ) -> UInt64? {
        guard detector.isDue(poll.load) else { return detector.nextPoll(poll.load) }
        var poll = poll
        if poll.target == .unknown, let thread = loop.source.knownThread { poll.target = .thread(thread) }
        guard case .thread(let thread) = poll.target else { return nil }
        let start = detector.start
        let reading = ThreadProbe.read(thread, keeping: &probe)
        detector.add(
            .init(load: poll.load, cpu: reading?.onCPU, runQueue: reading?.runQueue ?? 0), countingFrom: countingFrom)
        var action: PeriodAction?
        context.timeCheck { action = detector.decide(evidence(loop.source)) }
        if start == nil || action == .drop { descriptors = UndrainedDescriptors() }
        guard let action, let start else { return detector.nextPoll(poll.load) }
        if detector.pattern != nil { activity = describe(from: start) }
        let activity = activity ?? .init(turnsPerSecond: 0)
        period.carryOut(
            action, of: loop, poll, from: start.load, samples: Self.samplesPerInterval, context
        ) { _ in
            activity
        } record: {
            var record = StallRecord(
                .spinning, of: loop, poll, start: start.load, threshold: SpinDetector.duration, at: $0)
            // The pattern may have begun within the interval before the first that shows it.
            record.startUncertainty = 2 * SpinDetector.interval
            return record
        }
        return detector.nextPoll(poll.load)
    }

    func leave(_ context: WatchdogContext, at time: UInt64) {
        period.leave(context, since: detector.start?.load, at: time)
    }

    private mutating func evidence(_ source: any LoopSource) -> SpinDetector.Evidence {
        guard detector.isAsking else { return .none }
        if detector.pattern == .ready {
            descriptors.update()
            if descriptors.found != nil { return .proof }
            return detector.isCertain || !descriptors.areAllDrained ? .none : .refuted
        }
        return SpinDetector.evidence(
            of: period.stacks, runMethod: (source as? RunLoopSource)?.runMethod ?? 0..<0,
            runFunction: source.runFunction)
    }

    private func describe(from start: SpinDetector.Reading) -> StallReport.Activity? {
        guard let last = detector.last else { return nil }
        var activity = StallReport.Activity(turnsPerSecond: last.load.pace(since: start.load))
        if let first = start.cpu, let cpu = last.cpu {
            let share = Double(cpu &- min(first, cpu)) / Double(max(last.load.time &- start.load.time, 1))
            activity.cpuShare = min(share, 1).toThousandths
        }
        activity.readyDescriptor = descriptors.found
        activity.isModeEmpty = detector.pattern == .outside ? true : nil
        return activity
    }
}
