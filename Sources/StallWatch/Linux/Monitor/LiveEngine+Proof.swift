internal import CLinux
import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

extension LiveEngine {
    /// The time for stalls and their names, in nanoseconds: of a large program under a CPU quota; the tool waits longer.
    private static let proofLimit: UInt64 = 8_000_000_000
    /// The longest wait for the watchdog, in nanoseconds.
    private static let answerLimit: UInt64 = 1_000_000_000
    /// How often a stall is caused at most until it is found as it was: the machine, or a quota, may hide one.
    private static let attempts = 3
    /// The time that the thread of a proof waits for a CPU where other threads take it, in nanoseconds.
    private static let shortage: UInt64 = 1_000_000
    /// The descriptors that have to be free: those of a pipe, of captures and of a report.
    private static let descriptors = 16

    var isRunning: Bool { if case .running = state.withLock({ $0.phase }) { true } else { false } }

    /// Why a proof that began at a moment cannot be made; `nil` if it can.
    private func obstacle(since began: UInt64) -> MonitorProof? {
        if watchdog.pauses.isPaused { return MonitorProof(obstacle: "the monitor is paused: end the pause first") }
        if !isRunning {
            return MonitorProof(obstacle: "the monitor does not run: start it, and ask before it is stopped")
        }
        let wasPaused = watchdog.pauses.countingFrom(at: monotonicNow()) > began
        return wasPaused ? MonitorProof(obstacle: "the monitor was paused meanwhile: ask again") : nil
    }

    func prove() -> MonitorProof {
        let began = monotonicNow()
        if let obstacle = obstacle(since: began) { return obstacle }
        guard hasDescriptors(for: Self.descriptors) else {
            return MonitorProof(obstacle: "there are few free descriptors: raise the limit on open files (ulimit -n)")
        }
        let deadline = began &+ Self.proofLimit
        let outputs = SinkSet.storeTimeLimit &+ SinkSet.otherTimeLimit
        // The thread of the call may be one that captures cannot see.
        let proof = WorkerThread.value(until: deadline &+ Self.answerLimit &+ outputs) { [self] in
            guard !isProving.exchange(true, ordering: .acquiring) else {
                return MonitorProof(obstacle: "another proof is under way: ask again in some seconds")
            }
            defer { isProving.store(false, ordering: .releasing) }
            var proof = MonitorProof()
            let hasQuota = CPUQuota.limit(ofProcess: getpid()) != nil
            let probe = try? ThreadProbe(ofThisThread: .schedstat)
            let waited = probe?.read()?.runQueue ?? 0
            let before = (own: threadTimeNow(), all: WorkerThread.use.nanoseconds)
            // A monitor that is stopped meanwhile does not wait for the rest.
            for kind in MonitorProof.Kind.allCases where obstacle(since: began) == nil {
                var trial = trial(kind, isLong: false, until: deadline)
                var faults = [trial.faults]
                while monotonicNow() <= deadline, obstacle(since: began) == nil {
                    let isShortOfCPU = hasQuota || (probe?.read()?.runQueue ?? 0) >= waited + Self.shortage
                    guard Self.triesAgain(after: faults, isShortOfCPU: isShortOfCPU) else { break }
                    trial = self.trial(kind, isLong: true, until: deadline)
                    faults.append(trial.faults)
                }
                proof.trials.append(trial)
            }
            if let obstacle = obstacle(since: began) { return obstacle }
            proof.faults = reporter.faults() + Self.faults(of: statisticsFiles)
            // This thread computes on purpose.
            let (all, own) = (WorkerThread.use.nanoseconds, threadTimeNow() &- before.own)
            proof.cpuMilliseconds = milliseconds(all - min(all, before.all &+ own))
            state.withLock { state in
                state.captures.merge(proof.outcomes) { known, shown in
                    // A proof shows that something is missing, and not why.
                    if case .missing = known, shown == .missing() { known } else { shown }
                }
            }
            return proof
        }
        return proof ?? MonitorProof(obstacle: "the proof took too long, or the system refused it a thread")
    }

    /// Whether a stall is caused again, after the faults that its trials have had so far.
    ///
    /// A fault that repeats does not pass, and a third attempt would only take its time; unless a quota, or other threads,
    /// keep the monitor from its CPU.
    static func triesAgain(after faults: [[String]], isShortOfCPU: Bool) -> Bool {
        guard let last = faults.last, !last.isEmpty, faults.count < attempts else { return false }
        return isShortOfCPU || !faults.dropLast().contains(last)
    }

    /// Why the files of the statistics could not be written now: at the end, when they are, no output is left to say so.
    static func faults(of files: [FixedFile]) -> [String] {
        files.compactMap { file -> String? in
            let probe = AtomicFile.temporaryPath(for: file.name)
            do throws(SystemError) {
                // With a time it is not flushed, for which a busy disk may take long.
                try AtomicFile.write([], to: probe, in: file.directory, changedAt: wallClockNow())
                try AtomicFile.remove(probe, in: file.directory)
                return nil
            } catch {
                return StallWatchError(
                    .unwritableReports,
                    "the statistics file \(file.path) cannot be written: create its directory, or make it writable",
                    errno: error.errno
                ).description
            }
        }
    }

    private func trial(_ kind: MonitorProof.Kind, isLong: Bool, until deadline: UInt64) -> MonitorProof.Trial {
        do throws(SystemError) {
            let source = try ProofLoop(kind, isLong: isLong)
            let loop = LoopMonitor(
                label: "proof", threshold: ProofLoop.threshold, recorder: TurnRecorder(alarm: watchdog.alarm),
                source: source)
            loop.begin(at: monotonicNow())
            watchdog.add([loop])
            defer { watchdog.remove([loop]) }
            let duration = try source.stall(loop.recorder)
            let hasPassed = watchdog.waitForPass(until: monotonicNow() &+ Self.answerLimit)
            // The reporter may be busy with the app's stalls, too.
            while hasPassed, source.report == nil, !reporter.isIdle, monotonicNow() < deadline { nap() }
            guard let report = source.report else {
                let reason =
                    !hasPassed
                    ? "the watchdog does not answer"
                    : isTraced(callingThread) ? "a debugger holds it back" : "it was held back, or has no names yet"
                return MonitorProof.Trial(kind, fault: "there is no report: \(reason)")
            }
            return MonitorProof.Trial(
                kind, report, milliseconds: milliseconds(duration), owner: source.owner,
                asksNames: configuration.symbols.lookup.detail != .none)
        } catch {
            return MonitorProof.Trial(kind, fault: "the stall could not be caused: \(error)")
        }
    }
}

/// A loop of the monitor's own that stalls once, in a known way, on the thread of a proof.
private final class ProofLoop: LoopSource {
    /// In nanoseconds: short, so that a proof is, and long against the delays of a busy machine.
    static let threshold: UInt64 = 100_000_000
    /// The time for which the owner of the lock may have no CPU, as under a quota, in nanoseconds.
    private static let patience: UInt64 = 1_000_000_000

    let kind = LoopKind.probe
    private let way: MonitorProof.Kind
    private let stallTime: UInt64
    private let pipe: (read: KeptDescriptor, write: KeptDescriptor)?
    private let lock = Mutex(())
    private let holder = Atomic<Int32>(0)
    /// When the stall ends, in monotonic nanoseconds.
    private let end = Atomic<UInt64>(0)
    private let received = Mutex<StallReport?>(nil)

    /// A long one outlasts the time for which a quota, or other threads, may keep the watchdog from its CPU.
    init(_ way: MonitorProof.Kind, isLong: Bool) throws(SystemError) {
        self.way = way
        stallTime = isLong ? Self.threshold * 4 : Self.threshold / 5 * 8
        guard way == .pipe else {
            pipe = nil
            return
        }
        var ends: [Int32] = [-1, -1]
        let status = clinux_pipe(&ends)
        guard status == 0 else { throw SystemError("a pipe cannot be created", errno: status) }
        pipe = (KeptDescriptor(ends[0]), KeptDescriptor(ends[1]))
        // A read has to wait.
        _ = fcntl(ends[0], F_SETFL, 0)
    }

    deinit {
        pipe?.read.close()
        pipe?.write.close()
    }

    var report: StallReport? { received.withLock { $0 } }
    /// The thread that holds the lock.
    var owner: Int32 { holder.load(ordering: .relaxed) }
    var receiver: StallReceiver? { { [self] report in received.withLock { $0 = report } } }

    /// Stalls on the calling thread, and returns for how long by the kernel's clock, in nanoseconds.
    func stall(_ recorder: TurnRecorder) throws(SystemError) -> UInt64 {
        let isHeld = Semaphore()
        let other = try WorkerThread(name: "stallwatch-try") { [self] in
            holder.store(callingThread, ordering: .relaxed)
            lock.withLock { _ in
                let end = monotonicNow() &+ stallTime
                self.end.store(end, ordering: .relaxed)
                isHeld.post()
                sleepInProof(until: end)
            }
            if let end = pipe?.write, end.isOpen { _ = writeAll([0], to: end.number) }
        }
        defer { other.finish(until: monotonicNow() &+ stallTime) }
        guard isHeld.wait(until: monotonicNow() &+ Self.patience) else {
            throw SystemError("a new thread gets no CPU in time")
        }
        let end = end.load(ordering: .relaxed)
        recorder.rememberThread()
        let earliest = clinux_kernel_clock()
        let began = monotonicNow()
        recorder.beginTurn(at: began)
        let latest = clinux_kernel_clock()
        switch way {
        case .sleep: sleepInProof(until: end)
        case .lock: lockInProof()
        case .cpu: cpuInProof(until: end)
        case .pipe: pipeInProof()
        }
        let least = clinux_kernel_clock() &- latest
        let ended = monotonicNow()
        recorder.endTurn(at: ended)
        let most = clinux_kernel_clock() &- earliest
        guard earliest > 0 else { return ended &- began }
        // This thread may have lost its CPU between two readings.
        return min(max(ended &- began, least), most)
    }

    // Neither ends in a call, which would take its frame away.

    @inline(never) @discardableResult private func lockInProof() -> Bool { lock.withLock { _ in true } }

    @inline(never) @discardableResult private func pipeInProof() -> Bool {
        var (byte, count): (UInt8, Int) = (0, -1)
        // The program may have closed it, and given its number to another file.
        guard let end = pipe?.read else { return false }
        repeat { count = read(end.usable, &byte, 1) } while count < 0 && errno == EINTR
        return count == 1
    }
}

@inline(never) @discardableResult private func sleepInProof(until end: UInt64) -> UInt64 {
    var now = monotonicNow()
    while now < end {
        usleep(UInt32((end - now) / 1_000 + 1))
        now = monotonicNow()
    }
    return now &- end
}

@inline(never) @discardableResult private func cpuInProof(until end: UInt64) -> UInt64 {
    var turns: UInt64 = 0
    while monotonicNow() < end { turns &+= 1 }
    return turns
}
