internal import CUnwind
import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// Tries every capture method on a thread of its own.
package struct CaptureProbe: Sendable, Equatable {
    /// The result of one method.
    package enum Attempt: Sendable, Equatable {
        case works
        case failed(String)
        case notTried(String)
    }

    private static let notTried = Attempt.notTried("not tried")
    static let noMemory = Attempt.failed("memory cannot be read")
    private static let notNeeded = Attempt.notTried("not used where ptrace works")

    package private(set) var read = notTried
    package private(set) var ptrace = notTried
    package private(set) var signal = notTried
    package private(set) var memory = noMemory
    /// Who unwinds the engine's stacks; `nil` without an engine.
    package private(set) var unwinder: Unwinder?

    /// The result for this process, once it is known.
    private static let known = Mutex<CaptureProbe?>(nil)

    /// Returns the result for this process; tries the methods when it is first called.
    ///
    /// Takes some milliseconds the first time, and less than a second where nothing answers. A second attempt could
    /// disturb the captures of a monitor: under Yama's scope 1 a process names one tracer at a time. If a monitor's
    /// engine has found that ptrace works (`mayUsePtrace`), it is not tried again.
    package static func result(mayUsePtrace: Bool?) -> CaptureProbe {
        known.withLock { known in
            if let known { return known }
            let probe = CaptureProbe(mayUsePtrace: mayUsePtrace)
            known = probe
            return probe
        }
    }

    private init(mayUsePtrace: Bool?) {
        do throws(SystemError) {
            let engine = try CUnwindEngine()
            _ = engine.images()
            memory = CUnwindEngine.memoryReading
            unwinder = engine.unwinder
            (read, ptrace) = try ProbedThread.run(isWaiting: true) { thread in
                (
                    Self.attempt(.read, of: thread, with: engine),
                    mayUsePtrace == true ? .works : Self.attempt(.ptrace, of: thread, with: engine)
                )
            }
            guard ptrace != .works else {
                signal = Self.notNeeded
                return
            }
            signal = try ProbedThread.run(isWaiting: false, signal: CUnwindEngine.defaultSignal) { thread in
                Self.attemptSignal(of: thread, with: engine)
            }
        } catch {
            let failure = Attempt.failed(error.description)
            if read == Self.notTried { (read, ptrace) = (failure, failure) }
        }
    }

    /// Returns a value for each method, process_vm_readv(2) and libunwind, by the names of features in capabilities.
    ///
    /// The closures make it from a detail of what works, from the reason why it does not, or why it was not tried.
    package func features<Outcome>(
        works: (String?) -> Outcome, missing: (String) -> Outcome, notTried: (String) -> Outcome
    ) -> [String: Outcome] {
        let attempts: [(StallReport.CaptureMethod, Attempt)] = [
            (.read, read), (.ptrace, ptrace), (.signal, signal),
        ]
        var features = Dictionary(uniqueKeysWithValues: attempts.map { ($0.rawValue, $1) })
        features["processVMReadv"] = memory
        var outcomes = features.mapValues { attempt in
            switch attempt {
            case .works: works(nil)
            case .failed(let reason): missing(reason)
            case .notTried(let reason): notTried(reason)
            }
        }
        outcomes["libunwind"] =
            unwinder.map { $0.reason.map(missing) ?? works($0.name) } ?? missing("no capture engine")
        return outcomes
    }

    private static func attemptSignal(of thread: Int32, with engine: CUnwindEngine) -> Attempt {
        cunwind_may_send_signals()
            ? attempt(.signal, of: thread, with: engine)
            : .failed("a filter of system calls ends a program that sends one")
    }

    private static func attempt(
        _ method: StallReport.CaptureMethod, of thread: Int32, with engine: CUnwindEngine
    ) -> Attempt {
        do throws(CaptureFailure) {
            let probe = try ThreadProbe(thread: thread)
            let stack = try engine.capture(probe, at: engine.read(probe), by: method)
            return stack.frames.isEmpty ? .failed("the stack is empty") : .works
        } catch {
            switch error {
            case .refused(let error): return .failed(String(cString: strerror(error)))
            default: return .failed(error.description)
            }
        }
    }
}
