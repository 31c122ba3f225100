internal import CUnwind
import Glibc
import LinuxSupport
package import StallReports
import Synchronization

/// Tries every capture method on a thread of its own; a stop that only comes late, as on a busy machine, works.
package enum CaptureProbe {
    package typealias Outcome = Capabilities.Outcome

    typealias Outcomes = [Capabilities.FeatureName: Outcome]

    /// What was tried, until it is whole: a thread or a descriptor that is refused now may be there at the next call.
    final class Known: Sendable {
        private let whole = Mutex<Outcomes?>(nil)

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
    /// disturb the captures of a monitor: under Yama's scope 1 a process names one tracer at a time. If a monitor's
    /// engine has found that ptrace works (`mayUsePtrace`), it is not tried again.
    package static func outcomes(mayUsePtrace: Bool?) -> [Capabilities.FeatureName: Outcome] {
        known.outcomes { attempt(mayUsePtrace: mayUsePtrace) }
    }

    private static func attempt(mayUsePtrace: Bool?) -> (outcomes: Outcomes, isWhole: Bool) {
        var outcomes: Outcomes = [
            .signal: .notTried("not tried"), .processVMReadv: .missing("memory cannot be read"),
            .libunwind: .missing("no capture engine"),
        ]
        do throws(SystemError) {
            let engine = try CUnwindEngine()
            _ = engine.images()
            outcomes[.processVMReadv] = CUnwindEngine.memoryReading
            outcomes[.libunwind] = engine.unwinder.reason.map { .missing($0) } ?? .works(engine.unwinder.name)
            let (read, ptrace) = try ProbedThread.run(isWaiting: true) { thread in
                (
                    attempt(.read, of: thread, with: engine),
                    mayUsePtrace == true ? .works() : attempt(.ptrace, of: thread, with: engine)
                )
            }
            (outcomes[.read], outcomes[.ptrace]) = (read, ptrace)
            guard ptrace != .works() else {
                outcomes[.signal] = .notTried("not used where ptrace works")
                return (outcomes, true)
            }
            outcomes[.signal] = try ProbedThread.run(isWaiting: false, signal: CUnwindEngine.defaultSignal) { thread in
                cunwind_may_send_signals()
                    ? attempt(.signal, of: thread, with: engine)
                    : .missing("a filter of system calls may end a program that sends one")
            }
            return (outcomes, true)
        } catch {
            if mayUsePtrace == true { outcomes[.ptrace] = .works() }
            for name in [Capabilities.FeatureName.read, .ptrace] where outcomes[name] == nil {
                outcomes[name] = .missing(error.description)
            }
            return (outcomes, false)
        }
    }

    private static func attempt(
        _ method: StallReport.CaptureMethod, of thread: Int32, with engine: CUnwindEngine
    ) -> Outcome {
        do throws(CaptureFailure) {
            let probe = try ThreadProbe(thread: thread)
            let stack = try engine.capture(probe, at: engine.read(probe), by: method)
            return stack.frames.isEmpty ? .missing("the stack is empty") : .works()
        } catch {
            if case .refused(let error) = error { return .missing(String(cString: strerror(error))) }
            return error == .timedOut && method == .ptrace ? .works() : .missing(error.description)
        }
    }
}
