internal import CLinux
import Glibc
import LinuxSupport
import StallReports
import Synchronization

extension LiveEngine {
    /// The time for names in a proof, in nanoseconds: a large program's under a CPU quota; the tool waits longer.
    private static let proofLimit: UInt64 = 10_000_000_000
    /// The longest wait for the watchdog, and for all outputs, in nanoseconds.
    private static let answerLimit: UInt64 = 1_000_000_000

    private var isRunning: Bool { if case .running = state.withLock({ $0.phase }) { true } else { false } }

    func prove() -> MonitorProof {
        guard !watchdog.pauses.isPaused else {
            return MonitorProof(obstacle: "the monitor is paused: end the pause first")
        }
        let deadline = monotonicNow() &+ Self.proofLimit
        // The thread of the call may be one that captures cannot see.
        let proof = WorkerThread.value(until: deadline &+ 2 * Self.answerLimit) { [self] in
            var proof = MonitorProof()
            let before = (own: threadTimeNow(), all: WorkerThread.use.nanoseconds)
            // A monitor that is stopped meanwhile does not wait for the rest.
            for kind in MonitorProof.Kind.allCases where isRunning {
                let trial = trial(kind, until: deadline)
                // The machine may have disturbed it.
                proof.trials.append(trial.faults.isEmpty || !isRunning ? trial : self.trial(kind, until: deadline))
            }
            guard isRunning else {
                return MonitorProof(obstacle: "the monitor does not run: start it, and ask before it is stopped")
            }
            proof.faults = reporter.faults(until: monotonicNow() &+ Self.answerLimit)
            // This thread computes on purpose.
            let used = WorkerThread.use.nanoseconds &- before.all
            proof.cpuMilliseconds = milliseconds(used &- min(threadTimeNow() &- before.own, used))
            return proof
        }
        return proof ?? MonitorProof(obstacle: "the proof took too long, or the system refused it a thread")
    }

    private func trial(_ kind: MonitorProof.Kind, until deadline: UInt64) -> MonitorProof.Trial {
        do throws(SystemError) {
            let source = try ProofLoop(kind)
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
    static let stallTime = threshold / 5 * 8

    let kind = LoopKind.probe
    private let way: MonitorProof.Kind
    private let pipe: (read: Int32, write: Int32)
    private let lock = Mutex(())
    private let holder = Atomic<Int32>(0)
    private let received = Mutex<StallReport?>(nil)

    init(_ way: MonitorProof.Kind) throws(SystemError) {
        self.way = way
        var ends: [Int32] = [-1, -1]
        let status = clinux_pipe(&ends)
        pipe = (ends[0], ends[1])
        guard status == 0 else { throw SystemError("a pipe cannot be created", errno: status) }
        // A read has to wait.
        _ = fcntl(pipe.read, F_SETFL, 0)
    }

    deinit {
        for end in [pipe.read, pipe.write] where end >= 0 { close(end) }
    }

    var report: StallReport? { received.withLock { $0 } }
    /// The thread that holds the lock.
    var owner: Int32 { holder.load(ordering: .relaxed) }
    var receiver: StallReceiver? { { [self] report in received.withLock { $0 = report } } }

    /// Stalls on the calling thread, and returns for how long, in nanoseconds.
    func stall(_ recorder: TurnRecorder) throws(SystemError) -> UInt64 {
        let end = monotonicNow() &+ Self.stallTime
        let isHeld = Semaphore()
        let other = try WorkerThread(name: "stallwatch-try") { [self] in
            holder.store(callingThread, ordering: .relaxed)
            lock.withLock { _ in
                isHeld.post()
                sleepInProof(until: end)
            }
            _ = writeAll([0], to: pipe.write)
        }
        defer { other.finish(until: monotonicNow() &+ Self.stallTime) }
        guard isHeld.wait(until: end &- Self.threshold) else {
            throw SystemError("a new thread gets no CPU in time")
        }
        recorder.rememberThread()
        let began = monotonicNow()
        recorder.beginTurn(at: began)
        switch way {
        case .sleep: sleepInProof(until: end)
        case .lock: lockInProof()
        case .cpu: cpuInProof(until: end)
        case .pipe: pipeInProof()
        }
        let ended = monotonicNow()
        recorder.endTurn(at: ended)
        return ended &- began
    }

    // Neither ends in a call, which would take its frame away.

    @inline(never) @discardableResult private func lockInProof() -> Bool { lock.withLock { _ in true } }

    @inline(never) @discardableResult private func pipeInProof() -> Bool {
        var (byte, count): (UInt8, Int) = (0, 0)
        repeat { count = read(pipe.read, &byte, 1) } while count < 0 && errno == EINTR
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
