import StackCapture
import StallReports
import LinuxSupport
internal import CLinux

/// The state that the supervisors of all loops share, for the watchdog's thread only.
final class WatchdogContext {
    let capturer: any StackCapturing
    let now: @Sendable () -> UInt64
    let submit: @Sendable (StallRecord) -> Void
    let suppressed: SuppressionCounter
    let options: WatchdogOptions
    private let readOperations: @Sendable () -> OperationsReading
    /// As read first in this pass; `nil` before.
    private var operationsOfPass: OperationsReading?
    /// Returns whether a pool, which is one of the loops, computes, and no task of the app waits for its threads; `false` if it
    /// is not known.
    let delaysNoTask: (LoopMonitor, [LoopMonitor]) -> Bool
    private let watchdog = clinux_gettid()
    /// The time of all checks so far, in nanoseconds: one that reads names may wait for a disk and delay the watchdog.
    private(set) var timeOfChecks: UInt64 = 0
    /// The longest time that counts for one check, in nanoseconds: beyond it, the process may have been stopped.
    private static let longestCheck: UInt64 = 500_000_000
    /// The longest wait for the names of waits before a dump of all threads, in nanoseconds.
    private static let patience: UInt64 = 100_000_000
    let threads: ProcessThreads
    private var looks = LookBudget()
    var loops: [LoopMonitor] = [] {
        didSet {
            changesOfLoops &+= 1
            watched = nil
        }
    }
    /// How often ``loops`` has changed.
    private(set) var changesOfLoops = 0
    /// The identities of ``loops``; `nil` until one is asked about.
    private var watched: Set<ObjectIdentifier>?
    var tasks: CapturedTasks?

    init(
        capturer: any StackCapturing, now: @escaping @Sendable () -> UInt64,
        submit: @escaping @Sendable (StallRecord) -> Void, suppressed: SuppressionCounter, options: WatchdogOptions,
        operations: @escaping @Sendable () -> OperationsReading = { OperationsReading() },
        delaysNoTask: @escaping (LoopMonitor, [LoopMonitor]) -> Bool = { _, _ in false }
    ) {
        self.capturer = capturer
        self.now = now
        self.submit = submit
        self.suppressed = suppressed
        self.options = options
        readOperations = operations
        self.delaysNoTask = delaysNoTask
        threads = ProcessThreads(capturer: capturer)
    }

    /// How long before a capture an own thread may have ended that is still listed, in nanoseconds.
    private static let longestEnd: UInt64 = 1_000_000_000

    func isWatched(_ loop: LoopMonitor) -> Bool {
        let watched = watched ?? Set(loops.map { ObjectIdentifier($0) })
        self.watched = watched
        return watched.contains(ObjectIdentifier(loop))
    }

    /// The monitors' own threads, which no report includes.
    var ownThreads: Set<Int32> { WorkerThread.ids.union([watchdog]) }

    /// Begins a pass of the watchdog, in which what is the same for all loops is read once.
    func beginPass() {
        operationsOfPass = nil
        threads.beginPass()
        looks.beginPass()
    }

    /// Returns the operations in progress in this pass, with their ages at a time since a stall began (monotonic ns).
    func operations(since start: UInt64, at now: UInt64) -> OperationsInFlight {
        let reading = operationsOfPass ?? readOperations()
        operationsOfPass = reading
        return reading.inFlight(since: start, at: now)
    }

    /// Looks at a loop's turn for the first time, or makes another look that is due; `false` if there is no time for that.
    @discardableResult
    func look(again isAgain: Bool = false, _ look: () -> Void) -> Bool {
        let begun = now()
        guard !isAgain || looks.mayLookAgain(at: begun) else { return false }
        look()
        let ended = now()
        looks.add(ended &- min(begun, ended), at: ended)
        return true
    }

    /// Whether there is time in this pass to look at a thread.
    var mayLook: Bool { looks.mayLook }

    /// When there is time to look again, in monotonic nanoseconds.
    func nextLook(at now: UInt64) -> UInt64 { looks.nextLook(at: now) }

    /// Makes a look that cannot be put off.
    func lookUrgently(_ look: () -> Void) {
        looks.isUrgent = true
        self.look(look)
        looks.isUrgent = false
    }

    func timeCheck(_ check: () -> Void) {
        let begun = now()
        check()
        timeOfChecks += min(now() &- begun, Self.longestCheck)
    }

    /// Takes the stacks that explain a turn of this age; the sample is not valid until the caller says so, and, with
    /// `mayWait`, has to be collected if the stop of a thread in the kernel stays pending.
    ///
    /// `last` is the last reading of the target's thread, if its files are open.
    func sample(
        _ target: CaptureTarget, _ last: (probe: ThreadProbe, reading: ThreadReading)? = nil, age: UInt64,
        mayStop: Bool = true, mayWait: Bool = true
    ) -> StallRecord.Sample {
        // Many loops that cannot be stopped would delay the watchdog for seconds.
        let mayStop = mayStop && threads.mayStopLoop
        var sample = StallRecord.Sample(age: age, isValid: false, stack: .failure(.notTried))
        sample.wasStopPermitted = mayStop
        switch target {
        case .thread where !looks.mayLook: sample.stack = .failure(.outOfTime)
        case .thread(let thread):
            sample.stack = threads.measure { () throws(CaptureFailure) in
                guard let (probe, reading) = last else {
                    return try capturer.capture(thread: thread, mayStop: mayStop, mayWait: mayWait)
                }
                return try capturer.capture(probe, at: reading, mayStop: mayStop, mayWait: mayWait)
            }
        case .unknown: sample.stack = .failure(.unknownThread)
        case .pool, .threads:
            sample.stack = .failure(.pool)
            sample.workers = captureAll(than: ownThreads, of: target.knownThreads ?? ThreadIdentity.all()).threads
            for index in sample.workers.indices {
                sample.workers[index].activity = threads.activity(of: sample.workers[index].thread.id)
            }
        }
        // They are read where the stack is collected: a thread in munmap(2) may keep a reader of memory waiting.
        guard !sample.isPending else { return sample }
        sample.images = capturer.images()
        DebugFrames.prepare(for: sample.images)
        return sample
    }

    func addOtherThreads(to record: inout StallRecord, than target: CaptureTarget) {
        var excluded = ownThreads
        if case .thread(let thread) = target { excluded.insert(thread) }
        let captured = captureAll(than: excluded)
        func known(_ threads: [StallRecord.OtherThread]) -> Int { threads.count { (try? $0.stack.get()) != nil } }
        // Of two attempts the one that tells more.
        guard known(captured.threads) >= known(record.otherThreads) else { return }
        (record.otherThreads, record.omittedThreads) = captured
        record.otherImages = capturer.images()
        // An early hang: later looks cannot make up for what its only dump does not name.
        threads.settleNames(until: now() &+ Self.patience)
        let locks = LockOwnerResolver(threads: threads, memory: GuardedMemory())
        var waits: [Int32: ThreadWait] = [:]
        for other in record.otherThreads {
            waits[other.thread.id] = locks.wait(of: other.thread.id, stack: try? other.stack.get())
        }
        if case .thread(let thread) = target {
            waits[thread] = locks.wait(of: thread, stack: record.samples.lazy.compactMap { try? $0.stack.get() }.last)
        }
        locks.markDeadlocks(&waits)
        for index in record.otherThreads.indices {
            record.otherThreads[index].wait = waits[record.otherThreads[index].thread.id]
        }
    }

    func captureAll(
        than excluded: Set<Int32>, of all: [Int32] = ThreadIdentity.all()
    ) -> (threads: [StallRecord.OtherThread], omitted: Int) {
        let began = monotonicNow() &- Self.longestEnd
        let others = all.filter { !excluded.contains($0) }
        let captured = others.prefix(StallRecord.maximumOtherThreads).map { thread in
            StallRecord.OtherThread(thread: .init(thread), stack: threads.capture(thread))
        }
        // A thread of the monitor is not known as one at its very beginning and end. One that has not run has done nothing.
        let own = ownThreads.union(WorkerThread.ended(since: began))
        let ofApp = captured.filter { thread in
            guard !own.contains(thread.thread.id) else { return false }
            guard let stack = try? thread.stack.get() else { return cpuTime(of: thread.thread.id) != 0 }
            return !stack.isOfMonitor
        }
        return (ofApp, max(others.count - captured.count, 0))
    }
}

/// The time for looks at loops, of which all may be late at once (a pure value): the watchdog has to find each in time, and
/// to leave the CPUs to the app.
struct LookBudget {
    /// The time for looks in one pass, in nanoseconds, beyond which threads are not looked at, and the number of looks that
    /// have any time.
    static let longestPass: UInt64 = 20_000_000
    static let freeLooks = 8
    /// The time for which no look is made again after a pass that used up its time, as a multiple of that.
    static let restFactor: UInt64 = 4
    /// How often the first look at a turn is put off, if only a look shows whether it is a stall.
    static let mostDelays = 3

    private var looks = 0
    private var left = LookBudget.longestPass
    /// In monotonic nanoseconds.
    private var restsUntil: UInt64 = 0
    /// Whether the look in progress cannot be put off.
    var isUrgent = false

    mutating func beginPass() { (looks, left) = (0, Self.longestPass) }

    /// Whether a thread may be looked at in this pass.
    var mayLook: Bool { left > 0 || looks < Self.freeLooks || isUrgent }

    /// Whether one may be that was looked at before: what is late since then goes first.
    func mayLookAgain(at now: UInt64) -> Bool { mayLook && now >= restsUntil }

    /// When one may be, in monotonic nanoseconds: in a later pass.
    func nextLook(at now: UInt64) -> UInt64 { max(restsUntil, now &+ Self.longestPass) }

    /// Adds a look that took some time and has ended now.
    mutating func add(_ time: UInt64, at now: UInt64) {
        let hadTime = mayLook
        looks += 1
        left -= min(time, left)
        if hadTime, !mayLook { restsUntil = now &+ Self.longestPass &* Self.restFactor }
    }
}

/// Returns whether a debugger, and not a capture's helper, traces the thread (`TracerPid` in /proc/…/status, proc(5)).
func isTraced(_ thread: Int32) -> Bool { CUnwindEngine.isDebugged(thread: thread) }
