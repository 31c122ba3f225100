import StackCapture
import LinuxSupport
import Glibc

/// Finds out why one loop's turns take too long.
///
/// Used by the watchdog: told of its looks, it gives causes.
///
/// A look at a turn that is not late yet costs one reading, at most one a turn and threshold: it is what a stall's time is
/// counted from. A loop that waits is not read at all.
struct StallDiagnostician {
    private var files: ThreadFiles?
    private var quota = CPUQuota()
    /// The last readings before the stall, and all within it; ascending.
    private var readings: [Reading] = []
    private var lastTurn: UInt64 = 0
    private var observations: [Observation] = []
    /// Opened when a late turn is seen to wait for pages; closed when the next one is late.
    private var faults: PageFaultWatch?
    private let memory = GuardedMemory()
    private let threads: ProcessThreads
    private let waits: WaitClock

    private struct Reading {
        var thread: ThreadReading
        var throttled: UInt64
    }

    /// Readings that are kept while no turn is late: two before the turn that may become late, one inside, one to spare.
    static let readingsKept = 4

    /// - Parameters:
    ///   - threads: The threads of the process, among them the owners of locks.
    ///   - waits: How long the loop has waited for its events.
    init(threads: ProcessThreads, waits: WaitClock) {
        self.threads = threads
        self.waits = waits
    }

    /// The watchdog has looked at a turn that is not late (yet).
    ///
    /// - Parameters:
    ///   - thread: The thread that runs it.
    ///   - turn: When it began: its identity.
    ///   - threshold: The loop's threshold, in nanoseconds.
    ///   - now: The time, in monotonic nanoseconds.
    /// - Returns: What the kernel said of the thread, if it was asked.
    mutating func inspect(_ thread: Int32, turn: UInt64, threshold: UInt64, now: UInt64) -> ThreadReading? {
        if turn == lastTurn, let last = readings.last, last.thread.time >= turn, now &- last.thread.time < threshold {
            return nil
        }
        lastTurn = turn
        let reading = read(thread)
        if readings.count > Self.readingsKept { readings.removeFirst(readings.count - Self.readingsKept) }
        return reading
    }

    /// A stack has been taken of the thread, whose turn has been late since `start`: why it is, so far.
    ///
    /// - Parameters:
    ///   - thread: The thread that runs the turn.
    ///   - stack: Its stack, if one could be taken.
    ///   - start: From when the turn's age counts.
    ///   - isFirst: Whether this is the stall's first sample.
    ///   - isOver: Whether the turn has ended meanwhile, asked after the look: then what was seen is something else.
    /// - Returns: The cause so far; `nil` if the thread cannot be read.
    mutating func sample(
        _ thread: Int32, stack: CapturedStack?, start: UInt64, isFirst: Bool, isOver: () -> Bool
    ) -> Cause? {
        if isFirst {
            observations.removeAll()
            faults = nil
        }
        guard let reading = read(thread) else { return nil }
        if isFirst { addEarlierObservation(since: start) }
        let observation = observe(reading, thread: thread, stack: stack)
        if !isOver() { observations.append(observation) }
        watchFaults(of: thread, since: start)
        return cause(from: start, to: reading.time)
    }

    /// The turn that began at `start` ended at `end`: why it was late.
    ///
    /// Returns `nil` if the thread could not be read.
    mutating func end(_ thread: Int32, start: UInt64, end: UInt64) -> Cause? {
        read(thread)
        faults?.read()
        defer { faults = nil }
        return cause(from: start, to: end)
    }

    /// Asks the kernel for the addresses of the page faults that go to a disk, from the first one on that a late turn has.
    private mutating func watchFaults(of thread: Int32, since start: UInt64) {
        guard faults == nil else {
            faults?.read()
            return
        }
        guard let last = readings.last?.thread, let first = readings.first(where: { $0.thread.time >= start })?.thread,
            last.activity == .faulting || last.majorFaults > first.majorFaults
        else { return }
        faults = PageFaultWatch(thread: thread)
    }

    /// Takes a reading and keeps it.
    ///
    /// Of another thread than last time, the earlier readings say nothing.
    @discardableResult
    private mutating func read(_ thread: Int32) -> ThreadReading? {
        if files?.thread != thread {
            files = ThreadFiles(thread: thread)
            readings.removeAll()
        }
        guard var reading = files?.read() else { return nil }
        reading.loopWaited = waits.total(at: reading.time)
        readings.append(Reading(thread: reading, throttled: quota.throttled(thread: thread)))
        return reading
    }

    /// The look that came before the turn was late is one of the stall, too, if it fell into the turn.
    private mutating func addEarlierObservation(since start: UInt64) {
        guard readings.count > 1, let earlier = readings.dropLast().last?.thread, earlier.time >= start else { return }
        observations.append(
            Observation(
                time: earlier.time, activity: earlier.activity,
                call: earlier.call.map { DescribedCall($0, memory: memory) }, waitChannel: earlier.waitChannel
            )
        )
    }

    private func observe(_ reading: ThreadReading, thread: Int32, stack: CapturedStack?) -> Observation {
        var observation = Observation(
            time: reading.time, activity: reading.activity, waitChannel: reading.waitChannel
        )
        guard var call = reading.call else {
            if reading.activity == .faulting {
                observation.kernelStack = files?.kernelStack()
            } else {
                observation.function = stack.flatMap { threads.names(of: $0).first?.libcFunction }
            }
            return observation
        }
        if call.isRestarted, let stack {
            call = call.original(frames: threads.names(of: stack))
            observation.activity = .waiting(call)
        }
        observation.call = DescribedCall(call, memory: memory)
        observation.kernelStack = files?.kernelStack()
        if call.purpose == .lock {
            observation.lock = LockOwnerResolver(threads: threads, memory: memory).follow(thread, stack: stack)
        }
        return observation
    }

    private func cause(from start: UInt64, to end: UInt64) -> Cause? {
        guard let split = TimeSplit(readings: readings.map(\.thread), from: start, to: end),
            let first = readings.last(where: { $0.thread.time <= start }) ?? readings.first,
            let last = readings.last
        else { return nil }
        let evidence = Evidence(
            split: split, observations: observations, start: start,
            minorFaults: last.thread.minorFaults - first.thread.minorFaults,
            majorFaults: last.thread.majorFaults - first.thread.majorFaults,
            voluntarySwitches: last.thread.voluntarySwitches - first.thread.voluntarySwitches,
            involuntarySwitches: last.thread.involuntarySwitches - first.thread.involuntarySwitches,
            kernelShare: Self.kernelShare(from: first.thread, to: last.thread),
            throttled: last.throttled - min(first.throttled, last.throttled),
            pagedFile: faults?.file
        )
        let verdict = CauseRules.judge(evidence)
        return Cause(
            kind: verdict.kind, confidence: verdict.confidence, evidence: evidence, observation: verdict.observation,
            pressure: Pressure.current()
        )
    }

    /// The kernel's share of the CPU time.
    ///
    /// The kernel counts it by ticks of 10 ms or less: of fewer than five, nothing can be said.
    private static func kernelShare(from first: ThreadReading, to last: ThreadReading) -> Double? {
        let user = last.userTicks - min(first.userTicks, last.userTicks)
        let system = last.systemTicks - min(first.systemTicks, last.systemTicks)
        guard user + system >= 5 else { return nil }
        return Double(system) / Double(user + system)
    }
}

extension ThreadReading {
    /// The system call that the thread waits in.
    fileprivate var call: SystemCall? {
        if case .waiting(let call) = activity { return call }
        return nil
    }
}
