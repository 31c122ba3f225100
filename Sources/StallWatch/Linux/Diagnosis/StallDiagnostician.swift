import StackCapture
import StallReports
import Glibc
import LinuxSupport
internal import CLinux

/// Diagnoses a loop's stalls, for the watchdog; before a check, with at most one reading per turn and threshold.
struct StallDiagnostician {
    var probe: ThreadProbe?
    /// The thread that ``readings`` are of; 0 before the first.
    private var readThread: Int32 = 0
    private var quota = CPUQuota()
    private static let seesQuotas = CPUQuota.seesAll
    /// The last readings before the stall and all readings within it, ascending by time.
    private var readings: [ThreadReading] = []
    /// Opened when a late turn waits for pages; closed when that stall ends or the next one begins.
    private var faults: PageFaultWatch?
    /// Read when the thread of a late turn is ready to run.
    private var steal: CPUSteal?
    private var competitors: StallReport.Competitors?
    /// The number of CPUs that the thread may use, as last seen while it waited for one; 0 if it has not.
    private var usableProcessors = 0
    private var owner: OwnerWatch?
    /// The thread's switches that stops have caused: a stop counts as a wait, and the call that it restarts as another.
    private var ownSwitches: UInt64 = 0
    private let memory = GuardedMemory()
    private let threads: ProcessThreads
    private let waits: WaitClock

    /// The number of readings kept while no turn is late: two before the turn, one inside it and one spare.
    static let readingsKept = 4
    /// Below this share of all CPUs' time, a thread that gets no CPU finds another one.
    static let leastStolenShare = 0.1
    /// The largest number of readings kept of one turn that is not late, which checks of a turn do not reach.
    static let maximumReadings = 64

    init(threads: ProcessThreads, waits: WaitClock) {
        self.threads = threads
        self.waits = waits
    }

    mutating func prepare(_ thread: Int32, turn: UInt64, threshold: UInt64, now: UInt64) {
        let last = readings.last.flatMap { $0.time >= turn ? $0 : nil }
        if let last, now &- last.time < threshold { return }
        let limit = last == nil ? Self.readingsKept : Self.maximumReadings
        read(thread)
        if readings.count > limit { readings.removeFirst(readings.count - Self.readingsKept) }
    }

    /// Begins with an earlier reading of a thread, from which on its time is known, and that with a `quota` that counts since then.
    mutating func begin(_ thread: Int32, at reading: ThreadReading, _ quota: CPUQuota) {
        (readThread, readings, self.quota) = (thread, [reading], quota)
    }

    mutating func readOwner(_ reading: ThreadReading) {
        // A thread that was woken has the lock, or nearly.
        if !reading.isRunnable { owner?.read { [threads] in threads.ready } }
    }

    mutating func forgetOwner() { owner = nil }

    mutating func followOwner(_ observation: Observation) {
        guard let lock = observation.lock else { return owner = nil }
        if owner?.follows(lock) == true {
            owner?.read { [threads] in threads.ready }
        } else {
            owner = OwnerWatch(lock)
        }
    }

    /// Forgets what was found out about an earlier stall.
    mutating func forgetStall() { (faults, steal, competitors, usableProcessors) = (nil, nil, nil, 0) }

    /// Returns what the thread of a late turn does; `nil` if it cannot be read.
    ///
    /// `reading` is the last one, if the thread has not run since; else the thread is read again.
    mutating func observeLate(_ thread: Int32, _ reading: ThreadReading?, stack: CapturedStack?) -> Observation? {
        guard let reading = reading ?? read(thread, after: stack) else { return nil }
        if steal == nil, reading.isRunnable { steal = threads.steal }
        if let before = readings.dropLast().last, reading.competes(since: before) {
            competitors = StallReport.Competitors(
                beside: thread, among: threads.ready, earlier: competitors)
            usableProcessors = Int(clinux_usable_processors(thread))
        }
        return observe(reading, thread: thread, stack: stack, isLate: true)
    }

    /// Returns what the thread of an early turn does, without stopping any thread; `nil` if it cannot be read.
    mutating func observeEarly(_ thread: Int32, _ reading: ThreadReading?, stack: CapturedStack) -> Observation? {
        (reading ?? read(thread, after: stack)).map { observe($0, thread: thread, stack: stack, isLate: false) }
    }

    /// Returns the observations to keep of a late turn that counts from `start`, after its thread was observed.
    ///
    /// If the turn had ended by `end`, only a stack from before counts. The reading before comes before the first one.
    mutating func kept(
        _ observation: Observation, stack: CapturedStack?, start: UInt64, isFirst: Bool, end: UInt64?
    ) -> [Observation] {
        guard let reading = readings.last else { return [] }
        var (observation, kept): (Observation, [Observation]) = (observation, [])
        if isFirst, let before = readings.dropLast().last, before.time >= start, before.time <= end ?? .max {
            if end == nil, !reading.hasRun(since: before) {
                // The thread has been in this place since then.
                observation.until = observation.time
                observation.time = before.time
                observation.used = (before.used, reading.used)
            } else {
                kept.append(Self.observation(of: before, thread: readThread))
            }
        }
        if end == nil {
            followOwner(observation)
            kept.append(observation)
        } else if let stack, let time = stack.capturedAt, time <= end ?? .max, stack.threadState == .running {
            // The thread has gone on since it was captured, so only the stack counts.
            var captured = Observation(time: min(time, reading.time), thread: readThread, activity: .running)
            explain(&captured, by: stack)
            kept.append(captured)
        }
        return kept
    }

    /// Returns the cause of a late turn so far, until the last reading; watches page faults once there has been one.
    mutating func cause(_ thread: Int32, start: UInt64, _ observations: [Observation]) -> Cause? {
        watchFaults(of: thread, since: start)
        return readings.last.flatMap { cause(observations, from: start, to: $0.time) }
    }

    /// Takes a last reading and returns the final cause of a late turn; `nil` if the thread could not be read.
    ///
    /// Without `isEndKnown`, `end` is the last look: the turn, and its wait, went on for an unknown time after it.
    mutating func end(
        _ thread: Int32, start: UInt64, end: UInt64, _ observations: [Observation], isEndKnown: Bool = true
    ) -> Cause? {
        let before = readings.last
        // A queue may have moved to another thread, which the readings are of then.
        let last = read(readings.isEmpty ? thread : readThread)
        faults?.read(threads.mapping)
        defer { (faults, steal) = (nil, nil) }
        // Who ends a probe's turn need not be the thread that it is about.
        let goesOn = before.map { last?.hasRun(since: $0) ?? true } ?? true
        var cause = cause(observations, from: start, to: end, goesOn: goesOn)
        if isEndKnown, goesOn, let seen = cause?.observation, let lock = seen.lock, let limit = lock.limit,
            lock.lock.ownership == .none,
            observations.allSatisfy({ $0.lock == nil || $0.lock?.lock.limit == lock.lock.limit }),
            // Else the clock was set.
            let now = lock.lock.limit?.monotonic, max(now, limit) - min(now, limit) < TimeLimit.uncertainty
        {
            // Of several waits in a row, each with a limit, the looks need not have met the last one: it and that for the loop's
            // events would be two more.
            let met = readings.last { $0.time <= seen.time }?.voluntarySwitches
            let later = met.flatMap { met in last?.voluntarySwitches.map { $0 - min(met, $0) } } ?? .max
            let ended = TimeLimit.hasEnded(limit, wait: end)
            cause?.observation?.lock?.endedByLimit = ended == true && later > 1 ? nil : ended
        }
        return cause
    }

    private mutating func watchFaults(of thread: Int32, since start: UInt64) {
        if let faults { return faults.read(threads.mapping) }
        guard let last = readings.last, let first = readings.first(where: { $0.time >= start }),
            last.activity == .faulting || last.majorFaults > first.majorFaults
        else { return }
        faults = PageFaultWatch(thread: thread)
    }

    /// Takes a reading and stores it; discards the earlier ones if the thread has changed.
    ///
    /// After a capture it leaves out the switches since the last reading that the capture's stop has caused.
    @discardableResult
    mutating func read(_ thread: Int32, after stack: CapturedStack? = nil) -> ThreadReading? {
        if readThread != thread {
            readThread = thread
            readings.removeAll()
            ownSwitches = 0
        }
        guard var reading = ThreadProbe.read(thread, keeping: &probe) else { return nil }
        threads.asked.look(at: &reading, of: thread)
        reading.voluntarySwitches = reading.voluntarySwitches.map { $0 - min(ownSwitches, $0) }
        if stack?.method == .ptrace, let before = readings.last {
            let own = reading.switches(ofStopSince: before)
            ownSwitches += own
            reading.voluntarySwitches? -= own
        }
        reading.loopWaited = waits.total(at: reading.time)
        reading.throttled = quota.throttled(thread: thread)
        readings.append(reading)
        return reading
    }

    /// Returns an earlier reading as an observation, without the memory of its call: the thread has gone on since.
    private static func observation(of reading: ThreadReading, thread: Int32) -> Observation {
        Observation(
            time: reading.time, thread: thread, used: (reading.used, reading.used), activity: reading.activity,
            call: reading.activity.call.map { DescribedCall($0, memory: nil) }, waitChannel: reading.waitChannel
        )
    }

    private func kernelStack(of thread: Int32) -> [String]? {
        (probe ?? (try? ThreadProbe(thread: thread, files: [])))?.kernelStack()
    }

    /// Describes where the thread is; only in a late turn are owners of its lock stopped, and peers asked about.
    private func observe(
        _ reading: ThreadReading, thread: Int32, stack: CapturedStack?, isLate: Bool
    ) -> Observation {
        let peers = isLate ? threads.peers : nil
        var observation = Observation(
            time: reading.time, thread: thread, used: (reading.used, reading.used),
            place: stack.map { $0.frames.map(\.address).hashValue }, activity: reading.activity,
            waitChannel: reading.waitChannel
        )
        if let stack { observation.shown = stack.isComplete ? .all : .part }
        let known = call(of: reading, stack)
        if let known { observation.activity = .waiting(known) }
        guard let call = known else {
            if reading.activity == .faulting {
                observation.kernelStack = kernelStack(of: thread)
            } else if let stack {
                explain(&observation, by: stack)
            }
            return observation
        }
        observation.call = threads.asked.describe(call, of: thread)
        observation.kernelStack = kernelStack(of: thread)
        if call.purpose == .lock {
            var lock = LockOwnerResolver(threads: threads, memory: memory, peers: peers, mayStop: isLate)
                .follow(thread, stack: stack, since: firstTime(of: reading))
            if let limit = lock?.lock.limit { lock?.limit = limit.monotonic }
            observation.lock = lock
        }
        if let peers,
            let question = PeerQuestion(
                call, of: thread, runs: reading.runs, memory,
                untilExit: stack.map { WaitFunctionNames.shared.isWaitUntilExit($0.frames, in: threads.images()) }
                    ?? false)
        {
            peers.ask(question, since: firstTime(of: reading))
            observation.question = question
        }
        return observation
    }

    /// Returns the call that a thread waits in: the kernel may not show it, or as restarted, where its stack tells.
    func call(of reading: ThreadReading, _ stack: CapturedStack?) -> SystemCall? {
        var call = reading.activity.call
        if !reading.showsSystemCall, let stopped = stack.flatMap(SystemCall.init(ofStopped:)) {
            call = stopped.original(waitChannel: reading.waitChannel)
        }
        guard let restarted = call, restarted.isRestarted, let stack else { return call }
        return restarted.original(frames: threads.names(of: stack))
    }

    /// Returns the time of the earliest reading of the same wait.
    private func firstTime(of reading: ThreadReading) -> UInt64 {
        let before = readings.last { $0.runs != reading.runs || $0.activity != reading.activity }
        return readings.first { $0.time > before?.time ?? 0 }?.time ?? reading.time
    }

    /// Adds what has been found out about those that the thread and the lock's owners wait for.
    private func addPeers(to observation: inout Observation) {
        for index in observation.lock?.owners.indices ?? 0..<0 {
            guard let question = observation.lock?.owners[index].question else { continue }
            observation.lock?.owners[index].systemCall?.add(threads.peers.answer(to: question))
        }
        guard let question = observation.question else { return }
        let answer = threads.peers.answer(to: question)
        observation.call?.add(answer)
        guard observation.lock?.lock.kind == .file else { return }
        observation.lock?.lock.ownership =
            answer.isKnown ? .process : .unknown(answer.reason ?? answer.peers.first?.reason ?? "it was just released")
    }

    func explain(_ observation: inout Observation, by stack: CapturedStack) {
        observation.function = NamedFrame.calledFunctionOfLibc(in: threads.names(of: stack))
        observation.call = stack.call.flatMap {
            DescribedCall($0, function: observation.function, memory: memory)
        }
    }

    /// The time that the host took from the most affected CPU since the turn was late; 0 if it is little of all CPUs' time.
    private func stolen() -> UInt64 {
        let now = threads.steal
        guard let steal, steal.share(until: now) >= Self.leastStolenShare else { return 0 }
        return steal.longest(until: now)
    }

    private func cause(
        _ observations: [Observation], from start: UInt64, to end: UInt64, goesOn: Bool = false
    ) -> Cause? {
        // Of a queue that has moved, the readings tell nothing of the time before.
        let hasMoved = observations.contains { $0.thread != readThread && $0.thread != 0 }
        let counted = hasMoved ? max(start, readings.first?.time ?? 0) : start
        guard !hasMoved || counted < end, let split = TimeSplit(readings: readings, from: counted, to: end),
            let first = readings.last(where: { $0.time <= counted }) ?? readings.first,
            let last = readings.last
        else { return nil }
        var observations = observations
        for index in observations.indices { addPeers(to: &observations[index]) }
        /// How much a count has grown; 0 if the system does not show it.
        func growth(_ count: (ThreadReading) -> UInt64?) -> UInt64 {
            guard let before = count(first), let now = count(last) else { return 0 }
            return now - min(before, now)
        }
        let (user, system) = (growth { $0.userTicks }, growth { $0.systemTicks })
        let evidence = Evidence(
            split: split, countsRunQueue: last.showsRunQueue, observations: observations, start: counted,
            goesOn: goesOn, minorFaults: growth { $0.minorFaults },
            majorFaults: growth { $0.majorFaults },
            voluntarySwitches: growth { $0.voluntarySwitches },
            involuntarySwitches: growth { $0.involuntarySwitches },
            // Fewer than five ticks are too coarse.
            kernelShare: user + system < 5 ? nil : Double(system) / Double(user + system),
            throttled: growth { $0.throttled }, seesQuotas: Self.seesQuotas,
            processors: threads.processors, usableProcessors: usableProcessors,
            // Only this cause is doubtful by it.
            stolen: split.runQueue * 2 >= split.duration ? stolen() : 0, competitors: competitors,
            pagedFile: faults?.file
        )
        var cause = CauseRules.conclusion(from: evidence)
        if hasMoved, cause.kind != .deadlock {
            if cause.confidence == .certain { cause.confidence = .likely }
            if (end - counted) * 2 < end - start { cause.confidence = .possible }
        }
        if let owner, let lock = cause.observation?.lock, owner.follows(lock) {
            // A quota stops all threads, whatever their priority is.
            cause.observation?.lock?.lastOwnerTime = owner.time(
                waiterNice: evidence.throttled >= split.duration / 2 ? nil : last.nice)
        }
        cause.pressure = threads.pressure
        return cause
    }
}

extension ThreadReading {
    /// The number of switches since a reading right before a stop that were the stop's: all of them in the same wait.
    func switches(ofStopSince before: ThreadReading) -> UInt64 {
        guard let now = voluntarySwitches, let then = before.voluntarySwitches, now > then else { return 0 }
        let isSameWait = before.shown?.call.map { shown?.call?.isSameWait(as: $0) ?? false } ?? false
        return isSameWait ? now - then : 1
    }
}

/// Finds the file whose pages a thread waits for.
///
/// The kernel records the addresses of major page faults through a software event of perf_event_open(2). The event must
/// be opened before the fault. It costs the thread less than a microsecond per major fault and nothing per minor fault.
/// So a watch is opened only while a turn is late and has waited for pages.
final class PageFaultWatch {
    private var watch: clinux_fault_watch
    /// The file of the last fault that could be resolved; `nil` if there was none.
    private(set) var file: String?

    /// Fails where the sysctl kernel.perf_event_paranoid is above 2, and under any seccomp filter.
    init?(thread: Int32) {
        var watch = clinux_fault_watch()
        // A seccomp filter, such as systemd's SystemCallFilter=, may kill the process for a call that it does not list.
        guard let status = readSmallFile("/proc/thread-self/status"), !ProcessStatus.mayHaveFilter(status),
            clinux_watch_faults(thread, &watch)
        else { return nil }
        // Set last: deinit runs even after a failed initializer once all properties are set.
        self.watch = watch
    }

    deinit { clinux_unwatch_faults(&watch) }

    /// Reads the last fault since the previous call, and updates ``file``, by the mapping of its address.
    func read(_ mapping: (UInt64) -> MemoryMapping?) {
        var address: UInt64 = 0
        guard clinux_last_fault(&watch, &address), let file = mapping(address)?.file else { return }
        self.file = file
    }
}
