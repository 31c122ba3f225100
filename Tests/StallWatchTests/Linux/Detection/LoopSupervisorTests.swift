import LinuxSupport
import Synchronization
import Testing
import TestSupport

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// What a loop's turns and the end of its thread make of a stall.
@Suite struct LoopSupervisorTests {
    private static let threshold: UInt64 = 100_000_000
    private static let begin: UInt64 = 1_000_000_000
    /// Ids that no thread has (proc(5), pid_max).
    private static let thread = Int32.max
    private static let otherThread = Int32.max - 1

    private let world = WatchedWorld(at: Self.begin)
    private let source = ThreadSource()
    private let capturer = StubCapturer()
    private let context: WatchdogContext
    private let loop: LoopMonitor
    private var supervisor: LoopSupervisor

    init() {
        context = world.context(capturer)
        loop = .stub("mortal", threshold: Self.threshold, source)
        supervisor = LoopSupervisor(loop, context)
        loop.recorder.beginTurn(at: Self.begin)
    }

    private mutating func poll(at time: UInt64) -> UInt64 {
        supervisor.poll(at: time, in: world)
    }

    private func endThread(_ meanwhile: @escaping () -> Void = {}) {
        capturer.answer = { _ in
            meanwhile()
            return .failure(.noSuchThread)
        }
    }

    /// Each loop has one, and calls have copies on the watchdog's stack.
    @Test func `a supervisor is small`() { #expect(MemoryLayout<LoopSupervisor>.stride <= 4_096) }

    @Test mutating func `threads that there was no time for are captured again`() throws {
        _ = poll(at: Self.begin + Self.threshold)
        var record = try #require(world.records.withLock { $0.last })
        #expect(record.lacksThreads)
        for (failure, lacks) in [(CaptureFailure.outOfTime, true), (.timedOut, true), (.refused(errno: 1), false)] {
            record.otherThreads = [.init(thread: .init(Self.thread), stack: .failure(failure))]
            #expect(record.lacksThreads == lacks)
        }
    }

    @Test func `a thread is only read when the time of the pass is used up`() {
        context.threads.beginPass(within: 1)
        let samples = [0, 1].map { context.sample(.thread(Self.thread), age: $0) }
        context.threads.beginPass()
        let next = context.sample(.thread(Self.thread), age: 2)
        #expect((samples + [next]).map(\.wasStopPermitted) == [true, false, true])
        #expect(capturer.stops == 2)
    }

    @Test mutating func `a stall that there is no time to look at is found in time and looked at later`() throws {
        context.useUpLooks(in: world)
        // Nothing on its stack excuses it.
        let queue = LoopMonitor.stub("queue", threshold: Self.threshold, ThreadSource(.dispatchQueue))
        supervisor = LoopSupervisor(queue, context)
        queue.recorder.beginTurn(at: Self.begin)
        var next = poll(at: Self.begin + Self.threshold)
        let first = try #require(world.records.withLock { $0.last })
        #expect(first.state == .ongoing && first.samples.map(\.isOutOfTime) == [true])
        let rest = LookBudget.longestPass * (LookBudget.restFactor + 1)
        while next <= Self.begin + Self.threshold + 2 * rest {
            context.beginPass()
            let time = next
            next = poll(at: time)
            try #require(next > time)
        }
        let last = try #require(world.records.withLock { $0.last })
        #expect(last.samples.contains { (try? $0.stack.get()) != nil })
    }

    @Test mutating func aStallEndsWithItsThread() throws {
        let next = poll(at: Self.begin + Self.threshold)
        #expect(world.states == [.ongoing])
        endThread()
        let last = poll(at: next)
        #expect(world.states == [.ongoing, .ended])
        let record = try #require(world.records.withLock { $0.last })
        #expect(record.duration == next - Self.begin)
        #expect(record.samples.map(\.isValid) == [true, false])
        #expect(record.samples.last?.isThreadGone == true)
        #expect(poll(at: last) == .max)
        #expect(supervisor.outcome(due: .max).mayPark, "the supervisor has nothing left to poll")
        supervisor.leave(at: last + 1)
        #expect(world.states == [.ongoing, .ended], "the end is reported once")
    }

    /// The process is stopped for an hour after a stall's last poll.
    @Test(arguments: [-1, nil, 1_000_000] as [Int?])
    mutating func `the time for which the process was stopped is none of a stall`(end: Int?) {
        let last = Self.begin + Self.threshold
        _ = poll(at: last)
        let resumed = last + 3_600_000_000_000
        // The turn ends before the stop, later, or right after the stop.
        if let end { loop.recorder.endTurn(at: end < 0 ? last + 1_000_000 : resumed + UInt64(end)) }
        world.time.store(resumed + 2_000_000, ordering: .relaxed)
        _ = supervisor.poll(at: resumed + 2_000_000, countingFrom: resumed, suppressed: .processStopped)
        let record = world.records.withLock { $0.last }
        #expect(world.states == [.ongoing, end == -1 ? .ended : .abandoned])
        #expect(record?.duration == Self.threshold + (end == -1 ? 1_000_000 : 0))
        #expect(supervisor.progress.state == (end == nil ? .stalled : .running))
        guard end == nil else { return }
        #expect(supervisor.progress.since == Self.begin, "a hang lasts through a stop")
        world.time.store(resumed + Self.threshold, ordering: .relaxed)
        _ = supervisor.poll(at: resumed + Self.threshold, countingFrom: resumed, suppressed: .processStopped)
        #expect(world.states == [.ongoing, .abandoned, .ongoing], "the turn is measured anew")
        #expect(world.records.withLock { $0.last?.duration } == Self.threshold)
    }

    /// A handler takes long, and then pauses the monitor for an import.
    @Test mutating func `a stall ends when its turn pauses the monitor`() {
        let last = Self.begin + Self.threshold
        _ = poll(at: last)
        #expect(supervisor.progress.state == .stalled)
        for age in 1...3 {
            let now = last + UInt64(age) * 10 * Self.threshold
            world.time.store(now, ordering: .relaxed)
            _ = supervisor.poll(at: now, countingFrom: now, suppressed: .paused)
            #expect(world.states == [.ongoing, .abandoned])
            #expect(supervisor.progress.state == .running, "a supervisor must not end the process")
        }
        #expect(world.records.withLock { $0.last?.duration } == Self.threshold)
        let resumed = last + 31 * Self.threshold
        world.time.store(resumed + Self.threshold, ordering: .relaxed)
        _ = supervisor.poll(at: resumed + Self.threshold, countingFrom: resumed, suppressed: .paused)
        #expect(world.states == [.ongoing, .abandoned, .ongoing], "the turn is measured from the end of the pause")
        #expect(world.records.withLock { $0.last?.duration } == Self.threshold)
    }

    /// The turn was over before the pause, or in it, and the watchdog looks later.
    @Test mutating func `a stall that is over when the monitor is paused has ended`() {
        let last = Self.begin + Self.threshold
        _ = poll(at: last)
        loop.recorder.endTurn(at: last + 1_000_000)
        world.time.store(last + 5_000_000, ordering: .relaxed)
        _ = supervisor.poll(at: last + 5_000_000, countingFrom: last + 5_000_000, suppressed: .paused)
        #expect(world.states == [.ongoing, .ended])
        #expect(world.records.withLock { $0.last?.duration } == Self.threshold + 1_000_000)
    }

    @Test mutating func `a turn of the monitor's own is not counted`() {
        let own = LoopMonitor.stub("own", threshold: Self.threshold, OwnSource())
        supervisor = LoopSupervisor(own, context)
        supervisor.suppress(.debugger)
        #expect(world.suppressed.current == SuppressionCounts())
        own.recorder.beginTurn(at: Self.begin)
        _ = poll(at: Self.begin + Self.threshold)
        #expect(world.records.withLock { $0.map { $0.receiver != nil } } == [true])
    }

    @Test mutating func `a sample has the time at which the stack was copied`() {
        capturer.answer = { _ in
            var stack = CapturedStack.stub([0x1000])
            stack.capturedAt = Self.begin + Self.threshold + 3_000_000
            return .success(stack)
        }
        _ = poll(at: Self.begin + Self.threshold)
        #expect(world.records.withLock { $0.last?.samples.map(\.age) } == [Self.threshold + 3_000_000])
    }

    /// The app may change the threshold while the first sample of a stall is taken, and later.
    @Test mutating func `a stall keeps the threshold that it was judged by`() {
        let longer = 4 * Self.threshold
        capturer.answer = { [loop] _ in
            loop.setThreshold(longer)
            return .success(.stub([0x1000]))
        }
        let next = poll(at: Self.begin + Self.threshold)
        loop.recorder.endTurn(at: next - 1)
        _ = poll(at: next)
        let record = world.records.withLock { $0.last }
        #expect(record?.state == .ended && record?.threshold == Self.threshold)
        #expect(record?.duration == next - 1 - Self.begin)
        loop.recorder.beginTurn(at: next)
        _ = poll(at: next + Self.threshold)
        #expect(world.states == [.ongoing, .ended], "the next turn has the new one")
    }

    @Test(arguments: [Self.thread, Self.otherThread])
    mutating func `the turn that stops the monitor is over`(stopper: Int32) {
        let next = poll(at: Self.begin + Self.threshold)
        supervisor.leave(at: next, stoppedBy: stopper)
        #expect(world.states == [.ongoing, stopper == Self.thread ? .ended : .abandoned])
        #expect(world.records.withLock { $0.last?.duration } == next - Self.begin)
    }

    /// Tasks of the priority high start again before those of medium do.
    @Test mutating func `a report has the priorities that wait at its last sample`() {
        let pools = TaskPools([.high, .medium])
        for pool in pools.all { pool.idle.pending.wrappingAdd(1, ordering: .relaxed) }
        let source = HeartbeatSource(
            kind: .dispatchQueue, owner: { CaptureTarget.thread(Self.thread) }, idle: pools
        ) { _ in }
        let tasks = LoopMonitor.stub("tasks", threshold: Self.threshold, source)
        supervisor = LoopSupervisor(tasks, context)
        tasks.recorder.beginTurn(at: Self.begin)
        _ = poll(at: Self.begin + Self.threshold)
        #expect(world.records.withLock { $0.last?.loop.priorities } == ["high", "medium"])
        pools.all[0].idle.pending.wrappingSubtract(1, ordering: .relaxed)
        _ = poll(at: Self.begin + 2 * Self.threshold)
        #expect(world.records.withLock { $0.last?.loop.priorities } == ["medium"])
        // The next heartbeat.
        pools.all[0].idle.pending.wrappingAdd(1, ordering: .relaxed)
        tasks.recorder.endTurn(at: Self.begin + 2 * Self.threshold + 1)
        _ = poll(at: Self.begin + 3 * Self.threshold)
        #expect(world.records.withLock { $0.last?.state == .ended && $0.last?.loop.priorities == ["medium"] })
    }

    /// The looks are a threshold and a bit apart; `true`: all threads compute, and no task waits.
    @Test(
        arguments: [
            ([true, true, true], []), ([true, false, true], []), ([false], [.ongoing]),
            ([true, true, false, false], [.ongoing]),
        ] as [([Bool], [StallRecord.State])])
    mutating func `a late heartbeat is no stall until a task waits`(looks: [Bool], states: [StallRecord.State]) {
        let computes = Mutex(false)
        // A supervisor does not keep its context.
        let context = world.context(capturer, delaysNoTask: { _, _ in computes.withLock { $0 } })
        defer { withExtendedLifetime(context) {} }
        let pool = LoopMonitor.stub("tasks", threshold: Self.threshold, ThreadSource(.cooperativePool))
        supervisor = LoopSupervisor(pool, context)
        pool.recorder.beginTurn(at: Self.begin)
        let step = 2 * Self.threshold
        for (number, look) in looks.enumerated() {
            #expect(world.states.isEmpty)
            computes.withLock { $0 = look }
            _ = poll(at: Self.begin + UInt64(number + 1) * step)
            #expect(supervisor.isStarved == !look)
        }
        #expect(world.states == states)
        #expect(world.suppressed.current[.noTaskWaited] == (looks[0] ? 1 : 0))
        let record = world.records.withLock { $0.last }
        // The last look was a step after the one from which it counts, and that a step after the last one without a task.
        guard looks.count > 1, let record else { return }
        #expect((Self.threshold...step).contains(record.duration))
        #expect(record.startUncertainty ?? 0 >= step)
    }

    /// The watchdog may wait for a sample while the loop ends its turn and the thread ends.
    @Test mutating func aTurnKeepsItsEndWhenItsThreadEndsAfterIt() throws {
        let next = poll(at: Self.begin + Self.threshold)
        let end = next - 5_000_000
        endThread { [loop] in loop.recorder.endTurn(at: end) }
        let last = poll(at: next)
        let record = try #require(world.records.withLock { $0.last })
        #expect(record.state == .ended)
        #expect(record.duration == end - Self.begin)
        _ = poll(at: last)
        #expect(world.states == [.ongoing, .ended], "the end is reported once")
    }

    @Test mutating func aTurnThatEndedBeforeItsThreadIsReported() throws {
        let time = Self.begin + 2 * Self.threshold
        endThread { [loop] in loop.recorder.endTurn(at: time - 1) }
        _ = poll(at: time)
        let record = try #require(world.records.withLock { $0.last })
        #expect(record.state == .ended)
        #expect(record.duration == time - 1 - Self.begin)
        #expect(world.suppressed.current[.threadEnded] == 0)
    }

    /// A worker of a dispatch queue may hand the queue to another worker and end.
    @Test mutating func aStallContinuesOnAnotherThread() {
        let next = poll(at: Self.begin + Self.threshold)
        endThread { [source] in source.thread.store(Self.otherThread, ordering: .relaxed) }
        #expect(poll(at: next) < .max)
        #expect(world.states == [.ongoing, .ongoing])
    }

    @Test mutating func `a thread that has ended is counted and not polled again`() {
        endThread()
        let next = poll(at: Self.begin + Self.threshold)
        #expect(world.states.isEmpty)
        #expect(world.suppressed.current[.threadEnded] == 1)
        #expect(poll(at: next) == .max)
        #expect(supervisor.outcome(due: .max).mayPark, "otherwise the watchdog would poll again at once, forever")
        #expect(supervisor.progress.state == .ended)
        #expect(world.suppressed.current[.threadEnded] == 1)
    }

    @Test mutating func `an abandoned loop is watched again from its next turn on`() {
        endThread()
        _ = poll(at: Self.begin + Self.threshold)
        capturer.answer = { _ in .success(.stub([0x1000])) }
        let begin = Self.begin + 3 * Self.threshold
        loop.recorder.beginTurn(at: begin)
        _ = poll(at: begin + 1)
        #expect(supervisor.progress == LoopProgress(label: "mortal", state: .running, since: begin + 1))
        _ = poll(at: begin + Self.threshold)
        #expect(world.states == [.ongoing])
        #expect(supervisor.progress == LoopProgress(label: "mortal", state: .stalled, since: begin))
    }
}
