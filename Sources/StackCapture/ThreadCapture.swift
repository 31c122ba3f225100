import Glibc
import LinuxSupport

/// Captures threads with the least intrusive method of the policy that returns a complete stack.
package final class ThreadCapture: StackCapturing {
    private let engine: any CaptureEngine
    /// The threads that were noted or captured while they ran.
    private var runningThreads: [Int32: RunningThread] = [:]
    package private(set) var policy: CapturePolicy
    /// The threads whose files stay open: those of loops.
    private var loopThreads: Set<Int32> = []
    /// The captures until ptrace is tried once more; `nil` if it is permitted, or was refused then, too.
    private var capturesUntilProbe: Int?

    /// The time of all captures so far, in nanoseconds.
    package private(set) var timeTaken: UInt64 = 0
    private let now: () -> UInt64

    /// The longest time that counts for one capture, in nanoseconds.
    ///
    /// A capture waits at most twice for the thread to stop. Each wait takes at most `CUNWIND_STOP_TIMEOUT_NANOSECONDS`
    /// and the helper's grace period of 100 ms. If a capture takes longer, the whole process was stopped meanwhile.
    static let longestCapture: UInt64 = 500_000_000
    /// The limit on attempts in one capture of a thread that keeps moving: it makes progress, and is sampled later.
    static let maximumAttempts = 4
    /// The limit on threads whose CPU time is remembered; over it, all are forgotten.
    static let maximumNoted = 256

    /// The captures without ptrace before it is tried once more.
    static let capturesBeforeProbe = 64
    /// The captures of a thread without a perf event after one that gave no sample in time.
    static let capturesWithoutPerf = 40
    /// The attempts in a row without a sample after which the thread is stopped all the same: it may wait for its disk
    /// now and then, and the machine's first event in a second may take 30 ms.
    static let maximumMissed = 12

    /// The last clock ticks of a thread, and its perf events without a sample.
    private struct RunningThread {
        var presence: SystemCallEvidence
        /// The captures for which no perf event is tried.
        var withoutPerf = 0
        /// The attempts in a row that the kernel took no sample for.
        var missed = 0
    }

    /// Creates a capturer; without a policy, it determines one by probing ptrace once.
    package init(
        engine: any CaptureEngine, policy: CapturePolicy? = nil, maySignal: Bool = true,
        now: @escaping () -> UInt64 = monotonicNow
    ) {
        self.engine = engine
        self.now = now
        self.policy = policy ?? CapturePolicy(mayUsePtrace: engine.probeStop())
        self.policy.maySignal = maySignal
        if policy == nil, !self.policy.mayUsePtrace { capturesUntilProbe = Self.capturesBeforeProbe }
    }

    package func capture(thread: Int32, mayStop: Bool) throws(CaptureFailure) -> CapturedStack {
        // Another thread is captured once, and its descriptors are the app's.
        defer { if !loopThreads.contains(thread) { engine.closeFiles(of: thread) } }
        return try timed { () throws(CaptureFailure) in try capture(thread, mayStop: mayStop, mayWait: false) }
    }

    package func captureOrWait(thread: Int32) throws(CaptureFailure) -> CapturedStack {
        noteLoop(thread)
        return try timed { () throws(CaptureFailure) in try capture(thread, mayStop: true, mayWait: true) }
    }

    package func keepFiles(of thread: Int32) {
        noteLoop(thread)
        _ = try? engine.status(of: thread)
    }

    private func noteLoop(_ thread: Int32) {
        if loopThreads.count >= Self.maximumNoted { loopThreads.removeAll() }
        loopThreads.insert(thread)
    }

    private func timed<Result>(_ body: () throws(CaptureFailure) -> Result) throws(CaptureFailure) -> Result {
        let began = now()
        defer { timeTaken += min(now() &- began, Self.longestCapture) }
        return try body()
    }

    package func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureFailure>? {
        do throws(CaptureFailure) {
            var stack = try timed { () throws(CaptureFailure) in try engine.collectStop(of: thread) }
            stack.threadState = .running
            return .success(stack)
        } catch {
            return error == .pending || error == .notPending ? nil : .failure(error)
        }
    }

    package func cancelPendingCapture(of thread: Int32) { engine.cancelStop(of: thread) }

    package func note(thread: Int32, turn: UInt64) {
        noteLoop(thread)
        guard let time = engine.cpuTime(of: thread) else { return }
        makeRoom()
        runningThreads[thread, default: RunningThread(presence: SystemCallEvidence(time, turn: turn))]
            .presence.note(time, turn: turn)
    }

    private func makeRoom() {
        if runningThreads.count >= Self.maximumNoted { runningThreads.removeAll() }
    }

    /// Returns whether a perf event is the way to capture the thread.
    ///
    /// The calls of a loop's thread must not be cut short. Another thread that was never noted is captured once, and
    /// waiting for its sample would cost its stack where it has no CPU.
    private func mayBeInKernel(_ thread: Int32, isOfLoop: Bool) -> Bool {
        guard isOfLoop || runningThreads[thread] != nil, let time = engine.cpuTime(of: thread) else { return false }
        makeRoom()
        var known = runningThreads[thread] ?? RunningThread(presence: SystemCallEvidence(time, turn: nil))
        defer { runningThreads[thread] = known }
        known.presence.note(time)
        guard known.withoutPerf == 0 else {
            known.withoutPerf -= 1
            return false
        }
        return known.presence.mayBeInKernel
    }

    /// Permits ptrace again if it works now: tried once, some captures after it was refused.
    private func probeAgain() {
        guard let left = capturesUntilProbe else { return }
        capturesUntilProbe = left > 0 ? left - 1 : nil
        if left == 0 { policy.mayUsePtrace = engine.probeStop() }
    }

    private func capture(_ thread: Int32, mayStop: Bool, mayWait: Bool) throws(CaptureFailure) -> CapturedStack {
        if mayStop { probeAgain() }
        // Without ptrace if only this thread refuses it.
        var policy = policy
        var hasProbed = false
        var incomplete: CapturedStack?
        var failure = CaptureFailure.moved
        // Only a loop's thread may keep the watchdog waiting.
        let mayBeInKernel = mayStop && policy.mayUsePerf != false && mayBeInKernel(thread, isOfLoop: mayWait)
        for _ in 0..<Self.maximumAttempts {
            do throws(CaptureFailure) {
                let status = try engine.status(of: thread)
                let methods = policy.methods(for: status, mayBeInKernel: mayBeInKernel)
                    .filter { mayStop || $0 == .read }
                if methods.isEmpty, !mayStop { throw CaptureFailure.notStopped }
                if methods.isEmpty {
                    failure = status.state == .running ? .refused(errno: EPERM) : .unknownSystemCall
                }
                for method in methods {
                    guard var stack = try stack(of: thread, by: method, mayWait: mayWait) else { continue }
                    stack.threadState = status.state
                    if stack.isComplete { return stack }
                    if stack.frames.count > (incomplete?.frames.count ?? -1) { incomplete = stack }
                }
                break
            } catch {
                failure = error
                switch error {
                case .notBlocked, .moved, .notSampled: continue
                // The caller has to take the stack later, also if a part of it is known.
                case .pending where mayWait: throw error
                case .refused(EBUSY): policy.mayUsePtrace = false
                case .refused where policy.mayUsePtrace:
                    // Another engine's helper may have held the thread.
                    if !hasProbed, engine.probeStop() {
                        hasProbed = true
                        continue
                    }
                    policy.mayUsePtrace = false
                    guard !hasProbed else { break }
                    self.policy.mayUsePtrace = false
                    capturesUntilProbe = Self.capturesBeforeProbe
                default: break
                }
                guard case .refused = error else { break }
            }
        }
        if let incomplete { return incomplete }
        throw failure
    }

    /// Captures a stack with one method; returns `nil` if the next method is to be tried.
    private func stack(
        of thread: Int32, by method: CapturedStack.Method, mayWait: Bool
    ) throws(CaptureFailure) -> CapturedStack? {
        guard method == .perf else {
            return try mayWait && method == .ptrace
                ? engine.stopOrWait(thread) : engine.capture(thread, by: method)
        }
        do throws(CaptureFailure) {
            let stack = try engine.capture(thread, by: .perf)
            policy.mayUsePerf = true
            runningThreads[thread]?.missed = 0
            return stack
        } catch {
            switch error {
            case .noSuchThread: throw error
            case .notSampled where (runningThreads[thread]?.missed ?? Self.maximumMissed) < Self.maximumMissed:
                runningThreads[thread]?.missed += 1
                throw error
            case .refused: policy.mayUsePerf = false
            case .notInCall:
                policy.mayUsePerf = true
                runningThreads[thread]?.presence.noteUserMode()
            // The kernel does not let the event be opened while munmap(2) or fork(2) holds the memory map. These calls
            // return as much after a stop as without one.
            default:
                runningThreads[thread]?.withoutPerf = Self.capturesWithoutPerf
                runningThreads[thread]?.missed = 0
            }
            return nil
        }
    }

    package var methods: [CapturedStack.Method] { policy.permitted }

    package var unwinder: Unwinder { engine.unwinder }

    package func images() -> ImageList { engine.images() }
}

/// The choice of capture methods, a pure function of a thread's status and the system's permissions.
package struct CapturePolicy: Equatable, Sendable {
    /// Whether the system permits stopping threads of this process with ptrace; Yama's scopes 2 and 3 and seccomp
    /// filters forbid it.
    var mayUsePtrace: Bool
    /// Whether the system permits sampling the kernel with perf events; `nil` until it is tried, as filters and the
    /// sysctl kernel.perf_event_paranoid without CAP_PERFMON forbid it.
    var mayUsePerf: Bool?
    /// Whether a thread may get a signal where ptrace is refused.
    var maySignal = true

    var permitted: [CapturedStack.Method] {
        [.read] + stops + (mayUsePerf == true ? [.perf] : [])
    }

    /// The method that keeps a running thread from running, if there is one.
    private var stops: [CapturedStack.Method] { mayUsePtrace ? [.ptrace] : maySignal ? [.signal] : [] }

    /// Returns the methods to try for a thread, in order, until one returns a complete stack.
    ///
    /// None for a thread that waits in an unknown system call: it can be neither read nor stopped safely.
    /// `mayBeInKernel`: the thread, if it runs, may be in a system call.
    func methods(for status: ThreadStatus, mayBeInKernel: Bool = false) -> [CapturedStack.Method] {
        if status.state == .running {
            // A stop or a signal makes calls such as copy_file_range(2) and sendfile(2) return short. Only a perf event
            // shows that the thread is in a call, and captures it there.
            let sampled: [CapturedStack.Method] = mayBeInKernel && mayUsePerf != false ? [.perf] : []
            // Signals are for running threads only: any handler, whatever its flags, ends a timed wait (signal(7)).
            return sampled + stops
        }
        // An uninterruptible thread reacts to neither ptrace nor a signal before its wait ends.
        let mayBeStopped = status.state == .blocked && mayUsePtrace && !status.isInterruptedByStop
        let readings: [CapturedStack.Method] = status.isOpaque ? [] : [.read]
        return mayBeStopped ? readings + [.ptrace] : readings
    }
}
