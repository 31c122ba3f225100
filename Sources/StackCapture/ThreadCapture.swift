import Glibc

/// Captures threads with the least intrusive method of the policy that returns a complete stack.
package final class ThreadCapture: StackCapturing {
    private let engine: any CaptureEngine
    package private(set) var policy: CapturePolicy

    /// The limit on attempts in one capture of a thread that keeps changing its state.
    ///
    /// A thread that moves this often makes progress; a later sample will catch it.
    static let maximumLooks = 4

    /// Creates a capturer.
    ///
    /// - Parameters:
    ///   - engine: The capture engine.
    ///   - policy: The policy; `nil` to determine it once by probing ptrace.
    package init(engine: any CaptureEngine, policy: CapturePolicy? = nil) {
        self.engine = engine
        self.policy = policy ?? CapturePolicy(mayUsePtrace: engine.probeStop())
    }

    package func capture(thread: Int32) throws(CaptureError) -> CapturedStack {
        var incomplete: CapturedStack?
        var failure = CaptureFailure.moved
        for _ in 0..<Self.maximumLooks {
            do throws(CaptureFailure) {
                let status = try engine.status(of: thread)
                let methods = policy.methods(for: status)
                if methods.isEmpty { failure = .unknownSystemCall }
                for method in methods {
                    var stack = try engine.capture(thread, by: method)
                    stack.threadState = status.state
                    if stack.isComplete { return stack }
                    if stack.frames.count > (incomplete?.frames.count ?? -1) { incomplete = stack }
                }
                break
            } catch {
                failure = error
                switch error {
                case .notBlocked, .moved: continue
                case .refused where policy.mayUsePtrace: policy.mayUsePtrace = false
                default: break
                }
                guard case .refused = error else { break }
            }
        }
        if let incomplete { return incomplete }
        throw CaptureError(failure)
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
        case .timedOut: self.init(description: "the thread did not answer in time")
        case .signalBlocked: self.init(description: "no stack: signal blocked")
        case .failed(let error): self.init(description: "the capture failed: \(String(cString: strerror(error)))")
        }
    }
}
