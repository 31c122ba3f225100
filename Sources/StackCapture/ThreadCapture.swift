import Glibc

/// Captures threads with the least intrusive method of the policy that returns a complete stack.
package final class ThreadCapture: StackCapturing {
    private let engine: any CaptureEngine
    /// The threads whose CPU time in the kernel is followed.
    private var kernelTimes: [Int32: KernelTime] = [:]
    package private(set) var policy: CapturePolicy

    /// The limit on attempts in one capture of a thread that keeps changing its state.
    ///
    /// A thread that moves this often makes progress; a later sample will catch it.
    static let maximumAttempts = 4
    /// The limit on threads whose time in the kernel is remembered; over it, all are forgotten.
    static let maximumNoted = 256

    /// The captures in a row that may fall into one clock tick: checks of a young turn are some milliseconds apart, and a
    /// tick is 10 ms.
    static let capturesPerTick = 5
    /// The captures of a thread without a perf event after one that gave no sample in time.
    static let capturesWithoutPerf = 40
    /// The attempts in a row without a sample after which the thread is stopped all the same.
    ///
    /// A copying thread waits for its disk now and then, and the machine's first event in a second may take 30 ms.
    static let maximumMissed = 12

    /// What is known of a thread's CPU time in the kernel.
    private struct KernelTime {
        /// The time in clock ticks, when the thread was last noted or captured.
        var ticks: UInt64
        /// The captures for which the thread counts as in the kernel without another tick.
        var capturesLeft = 0
        /// The captures for which no perf event is tried.
        var withoutPerf = 0
        /// The attempts in a row that the kernel took no sample for.
        var missed = 0
    }

    /// Creates a capturer.
    ///
    /// - Parameters:
    ///   - engine: The capture engine.
    ///   - policy: The policy; `nil` to determine it once by probing ptrace.
    package init(engine: any CaptureEngine, policy: CapturePolicy? = nil) {
        self.engine = engine
        self.policy = policy ?? CapturePolicy(mayUsePtrace: engine.probeStop())
    }

    package func capture(thread: Int32, mayStop: Bool) throws(CaptureError) -> CapturedStack {
        try capture(thread, mayStop: mayStop, mayWait: false)
    }

    package func captureOrWait(thread: Int32) throws(CaptureError) -> CapturedStack {
        try capture(thread, mayStop: true, mayWait: true)
    }

    package func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureError>? {
        do throws(CaptureFailure) {
            var stack = try engine.collectStop(of: thread)
            stack.threadState = .running
            return .success(stack)
        } catch {
            return error == .pending || error == .notPending ? nil : .failure(CaptureError(error))
        }
    }

    package func cancelPendingCapture(of thread: Int32) { engine.cancelStop(of: thread) }

    package func note(systemTicks ticks: UInt64, of thread: Int32) {
        if kernelTimes.count >= Self.maximumNoted { kernelTimes.removeAll() }
        kernelTimes[thread, default: KernelTime(ticks: ticks)].ticks = ticks
    }

    /// Returns whether a perf event is the way to capture the thread: it has spent a clock tick in the kernel since it was
    /// last noted, or did so a few captures ago.
    private func wasInKernel(_ thread: Int32) -> Bool {
        guard var time = kernelTimes[thread], let ticks = engine.systemTicks(of: thread) else { return false }
        defer { kernelTimes[thread] = time }
        time.capturesLeft = ticks > time.ticks ? Self.capturesPerTick : max(time.capturesLeft - 1, 0)
        time.ticks = ticks
        guard time.withoutPerf == 0 else {
            time.withoutPerf -= 1
            return false
        }
        return time.capturesLeft > 0
    }

    private func capture(_ thread: Int32, mayStop: Bool, mayWait: Bool) throws(CaptureError) -> CapturedStack {
        var incomplete: CapturedStack?
        var failure = CaptureFailure.moved
        let wasInKernel = mayStop && policy.mayUsePerf != false && wasInKernel(thread)
        for _ in 0..<Self.maximumAttempts {
            do throws(CaptureFailure) {
                let status = try engine.status(of: thread)
                let methods = policy.methods(for: status, wasInKernel: wasInKernel).filter { mayStop || $0 == .read }
                if methods.isEmpty, !mayStop { throw CaptureFailure.notStopped }
                if methods.isEmpty { failure = .unknownSystemCall }
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
                case .refused where policy.mayUsePtrace: policy.mayUsePtrace = false
                default: break
                }
                guard case .refused = error else { break }
            }
        }
        if let incomplete { return incomplete }
        throw CaptureError(failure)
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
            kernelTimes[thread]?.missed = 0
            return stack
        } catch {
            switch error {
            case .noSuchThread: throw error
            case .notSampled where (kernelTimes[thread]?.missed ?? Self.maximumMissed) < Self.maximumMissed:
                kernelTimes[thread]?.missed += 1
                throw error
            case .refused: policy.mayUsePerf = false
            case .notInCall: policy.mayUsePerf = true
            // The kernel does not let the event be opened while munmap(2) or fork(2) holds the memory map. These calls
            // return as much after a stop as without one.
            default:
                kernelTimes[thread]?.withoutPerf = Self.capturesWithoutPerf
                kernelTimes[thread]?.missed = 0
            }
            return nil
        }
    }

    package var methods: [CapturedStack.Method] { policy.permitted }

    package func images() -> ImageList { engine.images() }

    package func leave(processor: Int32) { engine.leave(processor: processor) }
}

extension CaptureError {
    package init(_ failure: CaptureFailure) {
        switch failure {
        case .noSuchThread: self.init(description: "the thread has ended", isThreadGone: true)
        case .notBlocked, .moved: self.init(description: "the thread kept moving while it was read")
        case .refused(let error): self.init(description: "the system refused: \(String(cString: strerror(error)))")
        case .unknownSystemCall: self.init(description: "the system call that the thread waits in is not known here")
        case .notStopped: self.init(description: "the thread would have to be stopped")
        case .timedOut: self.init(description: "the thread did not answer in time")
        case .notInCall: self.init(description: "the thread is not in a system call")
        case .notSampled: self.init(description: "the kernel took no sample of the thread in time")
        case .pending:
            self.init(description: "the thread has been in the kernel since it was asked to stop", isPending: true)
        case .notPending: self.init(description: "no capture of the thread is pending")
        case .signalBlocked: self.init(description: "no stack: signal blocked")
        case .failed(let error): self.init(description: "the capture failed: \(String(cString: strerror(error)))")
        }
    }
}
