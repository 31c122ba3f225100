import LinuxSupport
import StackCapture
import StallReports

/// Samples the threads of loops for a while: reads those that wait, and stops those that run for a bounded part of the
/// time (``StopBudget``), with an engine of its own that does not delay the watchdog.
struct LoopProfiler {
    static let maximumPoolThreads = 32
    /// The most threads that are sampled in a profile; the threads of a pool may come and go.
    static let maximumThreads = 128
    /// The time for which a thread is not stopped after a stop that it did not answer, in nanoseconds (250 ms).
    ///
    /// Such a thread is in the kernel for long. While a stop is pending, the watchdog has none of its own.
    static let timeWithoutStops: UInt64 = 250_000_000

    private struct Key: Hashable {
        let loop: Int
        /// The thread of a pool; 0 for a loop.
        let thread: Int32
    }

    private let loops: [[LoopMonitor]]
    let capturer: any StackCapturing
    private let inApp: InAppSettings
    private let now: @Sendable () -> UInt64
    private(set) var clock: ProfileClock
    private var threads: [Int32: ProfiledThread] = [:]
    private var keyed: [Key: ProfileTrack] = [:]
    private(set) var limits = ProfileLimits()
    let plan: ProfilePlan
    /// When the profile began (wall clock).
    let startedAt = Timestamp(wallClockNanoseconds: wallClockNow())
    /// The number of times that all loops were sampled.
    private(set) var passes = 0
    /// The largest number of a pool's threads that were not sampled at one time.
    private(set) var omittedThreads = 0
    /// The duration of the sampling, in nanoseconds.
    private(set) var duration: UInt64 = 0

    /// Creates a profiler, which begins at once and alone uses `capturer`; `loops` has the monitors of each loop.
    init(
        loops: [[LoopMonitor]], capturer: any StackCapturing, plan: ProfilePlan, inApp: InAppSettings,
        now: @escaping @Sendable () -> UInt64 = monotonicNow
    ) {
        self.loops = loops
        self.capturer = capturer
        self.plan = plan
        self.inApp = inApp
        self.now = now
        clock = ProfileClock(plan, begin: now())
    }

    /// The samples of each thread, sorted by loop.
    var tracks: [ProfileTrack] {
        keyed.sorted { ($0.key.loop, $0.key.thread) < ($1.key.loop, $1.key.thread) }.map { _, track in
            var track = track
            track.finish()
            return track
        }
    }

    /// Takes samples until `isOver` says so, which waits until a time in monotonic nanoseconds; returns whether it took all.
    mutating func run(until isOver: (UInt64) -> Bool) -> Bool {
        var generator = SystemRandomNumberGenerator()
        while let time = clock.nextSample(at: now(), &generator) {
            if isOver(time) { return false }
            pass()
        }
        guard !isOver(clock.end) else { return false }
        duration = now() &- clock.begin
        for thread in threads.values { thread.end() }
        return true
    }

    private mutating func pass() {
        passes += 1
        for (index, monitors) in loops.enumerated() {
            guard let (loop, target, isInTurn) = Self.current(of: monitors, at: now()) else { continue }
            switch target {
            case .thread(let thread): sample(thread, of: loop, Key(loop: index, thread: 0), isInTurn: isInTurn)
            case .unknown:
                // No thread runs the loop.
                let sample = ProfileTrack.Sample(
                    at: now() &- clock.begin, state: .idle, stack: .failure(.noThread))
                add(sample, of: loop, Key(loop: index, thread: 0), nil)
            case .pool:
                let all = ThreadIdentity.all().filter { [own = WorkerThread.ids] in !own.contains($0) }
                omittedThreads = max(omittedThreads, all.count - Self.maximumPoolThreads)
                for thread in all.prefix(Self.maximumPoolThreads) {
                    sample(thread, of: loop, Key(loop: index, thread: thread), isInTurn: true)
                }
            }
        }
    }

    /// Returns the monitor that follows a loop now (the main loop has two), its threads, and whether it is in a turn.
    private static func current(
        of monitors: [LoopMonitor], at now: UInt64
    ) -> (loop: LoopMonitor, target: CaptureTarget, isInTurn: Bool)? {
        let states = monitors.filter { ($0.source as? HeartbeatSource)?.isUnneeded != true }.map { monitor in
            let target = monitor.target
            // A loop that is watched by heartbeats has a thread only while it runs something.
            let isInTurn = !monitor.source.kind.reportsTurns || monitor.turnDuration(at: now) != nil
            return (loop: monitor, target: target, isInTurn: isInTurn)
        }
        return states.first { $0.isInTurn && $0.target != .unknown } ?? states.first { $0.target != .unknown }
            ?? states.first
    }

    private mutating func sample(_ id: Int32, of loop: LoopMonitor, _ key: Key, isInTurn: Bool) {
        guard let thread = profiled(id) else { return }
        let time = now()
        let elapsed = time &- clock.begin
        // Whatever the thread is doing: to sample only its waits would give them too much weight.
        guard thread.budget.mayStop(after: elapsed) else {
            keyed[key]?.skip()
            return
        }
        let activity = thread.activity()
        var stack: Result<CapturedStack, CaptureFailure>
        if let unchanged = activity.flatMap(thread.unchangedStack) {
            stack = .success(unchanged)
        } else {
            do throws(CaptureFailure) {
                let captured = try capturer.capture(thread: id, mayStop: time >= thread.nextStopAllowed)
                thread.budget.add(captured.heldNanoseconds)
                stack = .success(captured)
            } catch {
                if error.isThreadGone { threads[id] = nil }
                if error == CaptureFailure.timedOut { thread.nextStopAllowed = now() &+ Self.timeWithoutStops }
                stack = .failure(error)
            }
            thread.remember(try? stack.get(), activity)
        }
        let isWaiting = (try? stack.get()).map { $0.threadState != .running } ?? activity?.isWaiting ?? false
        let state: ProfileTrack.State = !isWaiting ? .running : isInTurn ? .blocked : .idle
        add(ProfileTrack.Sample(at: elapsed, state: state, stack: stack), of: loop, key, thread)
    }

    private mutating func add(
        _ sample: ProfileTrack.Sample, of loop: LoopMonitor, _ key: Key, _ thread: ProfiledThread?
    ) {
        // Taken out, so that its arrays are not copied.
        var track = keyed.removeValue(forKey: key) ?? ProfileTrack(of: loop, inApp: inApp)
        if let thread { track.thread = thread }
        track.add(sample, in: capturer.images(), &limits)
        keyed[key] = track
    }

    /// Returns a thread; `nil` if the profile has too many already.
    private mutating func profiled(_ id: Int32) -> ProfiledThread? {
        if let known = threads[id] { return known }
        guard threads.count < Self.maximumThreads else { return nil }
        let thread = ProfiledThread(id)
        threads[id] = thread
        // So that the capturer knows when the thread is in a system call, in which a stop would disturb it.
        capturer.note(thread: id, turn: 0)
        return thread
    }
}

/// The times of samples: one in each interval, at a random moment, because work may repeat in step with the sampling.
struct ProfileClock {
    /// The time between two samples on average, in nanoseconds.
    let interval: UInt64
    /// When the profile begins, in monotonic nanoseconds.
    let begin: UInt64
    private let intervals: UInt64
    private var next: UInt64 = 0
    /// The number of intervals without a sample, because the profiler was late.
    private(set) var missed = 0

    init(_ plan: ProfilePlan, begin: UInt64) {
        // In range: both numbers are positive, and at most 300 and 100.
        interval = 1_000_000_000 / UInt64(plan.hertz)
        intervals = UInt64(plan.seconds) * UInt64(plan.hertz)
        self.begin = begin
    }

    /// When the profile ends, in monotonic nanoseconds.
    var end: UInt64 { begin &+ intervals &* interval }

    /// Returns when the next sample is due, in monotonic nanoseconds; `nil` after the last interval, and none for
    /// intervals that are over, because that would show one moment many times.
    mutating func nextSample(at now: UInt64, _ generator: inout some RandomNumberGenerator) -> UInt64? {
        let current = min((now &- min(begin, now)) / interval, intervals)
        if current > next {
            missed += Int(current - next)
            next = current
        }
        guard next < intervals else { return nil }
        defer { next += 1 }
        return begin &+ next &* interval &+ UInt64.random(in: 0..<interval, using: &generator)
    }
}

/// The time for which a profile may keep a thread from running: ``start``, one in ``share`` of the time, and one stop.
struct StopBudget {
    /// The part of the time, 0.5 %: 100 us for each of 50 samples a second; a stop takes 6 to 40 us (measured) or more.
    static let share: UInt64 = 200
    /// The budget at the begin, in nanoseconds: the first stops of a thread are slower.
    static let start: UInt64 = 1_000_000

    /// The time for which the thread was kept from running so far, in nanoseconds.
    private(set) var held: UInt64 = 0

    mutating func add(_ nanoseconds: UInt64) { held &+= nanoseconds }

    /// Returns whether the thread may be stopped again, that many nanoseconds after the profile began.
    func mayStop(after elapsed: UInt64) -> Bool { held < Self.start + elapsed / Self.share }
}
