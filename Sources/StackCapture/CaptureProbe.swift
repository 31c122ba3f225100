internal import CUnwind
import Glibc
import LinuxSupport
package import StallReports

/// Tries every capture method on a thread of its own; a stop that only comes late, as on a busy machine, works.
package enum CaptureProbe {
    package typealias Outcome = Capabilities.Outcome

    package typealias Outcomes = [Capabilities.FeatureName: Outcome]

    /// What was tried, until it is whole: a thread or a descriptor that is refused now may be there at the next call.
    final class Known: Sendable {
        private let whole = ProcessMutex<Outcomes?>(nil)

        func outcomes(_ attempt: () -> (outcomes: Outcomes, isWhole: Bool)) -> Outcomes {
            whole.withLock { whole in
                if let whole { return whole }
                let (outcomes, isWhole) = attempt()
                if isWhole { whole = outcomes }
                return outcomes
            }
        }
    }

    /// The results for this process, once they are known.
    private static let known = Known()

    /// Returns the results for each method, process_vm_readv(2) and libunwind; tries them until that has succeeded once.
    ///
    /// Takes some milliseconds the first time, and less than a second where nothing answers. A second attempt could
    /// disturb the captures of a monitor: under Yama's scope 1 a process names one tracer at a time.
    package static func outcomes() -> Outcomes { known.outcomes { attempt() } }

    private static func attempt() -> (outcomes: Outcomes, isWhole: Bool) {
        do throws(SystemError) {
            let capturer = ThreadCapture(engine: try CUnwindEngine())
            var outcomes = capturer.outcomes
            outcomes[.read] = try ProbedThread.run(isWaiting: true) { attempt(capturer, of: $0, mayStop: false) }
            guard !capturer.policy.mayUsePtrace, cunwind_may_send_signals() else { return (outcomes, true) }
            outcomes[.signal] = try ProbedThread.run(isWaiting: false, signal: CUnwindEngine.defaultSignal) {
                attempt(capturer, of: $0, mayStop: true)
            }
            return (outcomes, true)
        } catch {
            let failure = Outcome.missing(error.description)
            return ([.read: failure, .ptrace: failure, .processVMReadv: failure, .libunwind: failure], false)
        }
    }

    private static func attempt(_ capturer: ThreadCapture, of thread: Int32, mayStop: Bool) -> Outcome {
        do throws(CaptureFailure) {
            let stack = try capturer.capture(thread: thread, mayStop: mayStop, mayWait: false)
            return stack.frames.isEmpty ? .missing("the stack is empty") : .works()
        } catch {
            return .missing(error.description)
        }
    }
}

extension ThreadCapture {
    /// What it knows of the same without a trial: whether a read or a signal gives a stack, only a capture shows.
    package var outcomes: CaptureProbe.Outcomes {
        var outcomes: CaptureProbe.Outcomes = [.processVMReadv: CUnwindEngine.memoryReading]
        outcomes[.libunwind] = unwinder.reason.map { .missing($0) } ?? .works(unwinder.name)
        outcomes[.ptrace] =
            policy.mayUsePtrace ? .works() : .missing(stopRefusal.map { String(cString: strerror($0)) })
        if policy.mayUsePtrace {
            outcomes[.signal] = .notTried("not used where ptrace works")
        } else if !cunwind_may_send_signals() {
            outcomes[.signal] = .missing("a filter of system calls may end a program that sends one")
        } else {
            outcomes[.signal] = .notTried("a proof shows it: stallwatch doctor --prove")
        }
        return outcomes
    }
}
