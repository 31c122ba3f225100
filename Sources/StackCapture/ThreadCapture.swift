import Glibc
import LinuxSupport
package import StallReports

/// Captures threads with the least intrusive method of the policy that returns a complete stack.
package final class ThreadCapture: StackCapturing {
    private let engine: any CaptureEngine
    package private(set) var policy: CapturePolicy
    /// The threads that have been asked to stop and were in the kernel.
    private var pending: [Int32: ThreadProbe] = [:]
    /// The captures until ptrace is tried once more; `nil` if it is permitted, or was refused then, too.
    private var capturesUntilProbe: Int?

    package private(set) var timeTaken: UInt64 = 0
    private let now: () -> UInt64

    /// The longest time that counts for one capture, in nanoseconds.
    ///
    /// A capture waits at most twice for the thread to stop. Each wait takes at most `CUNWIND_STOP_TIMEOUT_NANOSECONDS`
    /// and the helper's grace period of 100 ms. If a capture takes longer, the process may have been stopped meanwhile.
    static let longestCapture: UInt64 = 500_000_000
    /// The limit on attempts in one capture of a thread that keeps moving: it makes progress, and is sampled later.
    static let maximumAttempts = 4

    static let capturesBeforeProbe = 64

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

    package func capture(
        _ probe: ThreadProbe, at reading: ThreadReading, mayStop: Bool, mayWait: Bool
    ) throws(CaptureFailure) -> CapturedStack {
        try timed { () throws(CaptureFailure) in try capture(probe, reading, mayStop: mayStop, mayWait: mayWait) }
    }

    package func capture(thread: Int32, mayStop: Bool, mayWait: Bool) throws(CaptureFailure) -> CapturedStack {
        try timed { () throws(CaptureFailure) in
            try capture(ThreadProbe(thread: thread), nil, mayStop: mayStop, mayWait: mayWait)
        }
    }

    private func timed<Result>(_ body: () throws(CaptureFailure) -> Result) throws(CaptureFailure) -> Result {
        let began = now()
        defer { timeTaken += min(now() &- began, Self.longestCapture) }
        return try body()
    }

    package func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureFailure>? {
        guard let probe = pending[thread] else { return nil }
        do throws(CaptureFailure) {
            var stack = try timed { () throws(CaptureFailure) in try engine.collectStop(of: probe) }
            stack.threadState = .running
            pending[thread] = nil
            return .success(stack)
        } catch {
            guard error != .pending else { return nil }
            pending[thread] = nil
            return error == .notPending ? nil : .failure(error)
        }
    }

    package func cancelPendingCapture(of thread: Int32) {
        pending[thread] = nil
        engine.cancelStop(of: thread)
    }

    private func probeAgain() {
        guard let left = capturesUntilProbe else { return }
        capturesUntilProbe = left > 0 ? left - 1 : nil
        if left == 0 { policy.mayUsePtrace = engine.probeStop() }
    }

    private func capture(
        _ probe: ThreadProbe, _ reading: ThreadReading?, mayStop: Bool, mayWait: Bool
    ) throws(CaptureFailure) -> CapturedStack {
        var reading = reading
        if mayStop { probeAgain() }
        // Without ptrace if only this thread refuses it.
        var policy = policy
        var hasProbed = false
        var incomplete: CapturedStack?
        var failure = CaptureFailure.moved
        for _ in 0..<Self.maximumAttempts {
            do throws(CaptureFailure) {
                let now: ThreadReading
                if let known = reading.take() { now = known } else { now = try engine.read(probe) }
                let status = engine.status(of: probe, at: now)
                let methods = policy.methods(for: status).filter { mayStop || $0 == .read }
                if methods.isEmpty, !mayStop { throw CaptureFailure.notStopped }
                if methods.isEmpty {
                    failure = status.state == .running ? .refused(errno: EPERM) : .unknownSystemCall
                }
                for method in methods {
                    var stack =
                        try mayWait && method == .ptrace
                        ? engine.stopOrWait(probe) : engine.capture(probe, at: now, by: method)
                    stack.threadState = status.state
                    if stack.isComplete { return stack }
                    if stack.frames.count > (incomplete?.frames.count ?? -1) { incomplete = stack }
                }
                break
            } catch {
                failure = error
                switch error {
                case .notBlocked, .moved: continue
                // The caller has to take the stack later, also if a part of it is known.
                case .pending where mayWait:
                    pending[probe.thread] = probe
                    throw error
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

    package var methods: [StallReport.CaptureMethod] { policy.permitted }

    package var unwinder: Unwinder { engine.unwinder }

    /// See ``CaptureEngine/stopRefusal``.
    var stopRefusal: Int32? { engine.stopRefusal }

    package func images() -> ImageList { engine.images() }
}

/// The choice of capture methods, a pure function of a thread's status and the system's permissions.
package struct CapturePolicy: Equatable, Sendable {
    /// Whether the system permits stopping own threads with ptrace; Yama (2 and 3) and seccomp filters forbid it.
    var mayUsePtrace: Bool
    /// Whether a thread may get a signal where ptrace is refused.
    var maySignal = true

    var permitted: [StallReport.CaptureMethod] { [.read] + stops }

    /// The method that keeps a running thread from running, if there is one.
    private var stops: [StallReport.CaptureMethod] { mayUsePtrace ? [.ptrace] : maySignal ? [.signal] : [] }

    /// Returns the methods to try in turn until a stack is complete; none for a thread in an unknown system call.
    func methods(for status: ThreadStatus) -> [StallReport.CaptureMethod] {
        // Signals are for running threads only: any handler, whatever its flags, ends a timed wait (signal(7)).
        if status.state == .running { return stops }
        // An uninterruptible thread reacts to neither ptrace nor a signal before its wait ends.
        let mayBeStopped = status.state == .blocked && mayUsePtrace && !status.isInterruptedByStop
        let readings: [StallReport.CaptureMethod] = status.isOpaque ? [] : [.read]
        return mayBeStopped ? readings + [.ptrace] : readings
    }
}
