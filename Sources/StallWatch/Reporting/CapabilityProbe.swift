import LinuxSupport
import StackCapture
import StallReports
import StallSymbols
import Glibc

/// Tries what a monitor can do in this process.
struct CapabilityProbe: Sendable {
    var symbolication: SymbolicationSettings
    /// The stores whose files cannot be flushed, with the reason; `nil` if there is no store.
    var unflushed: [String]?
    /// Whether the monitor's engine has found that ptrace works; `nil` before the monitor has started.
    var mayUsePtrace: Bool?
    /// Returns why contexts cannot be read; `nil` if they can.
    ///
    /// May take a millisecond.
    var contextProblem: @Sendable () -> String? = { nil }

    /// Tries everything.
    ///
    /// Takes some milliseconds, on the calling thread and on short-lived threads; never stops a thread of the app.
    ///
    /// - Parameter loadsLibrary: Whether libdw is loaded to see if it works.
    /// - Returns: The capabilities.
    func capabilities(loadsLibrary: Bool) -> Capabilities {
        let environment = HostProbe.environment()
        var outcomes = waitingThread { thread in
            var outcomes = HostProbe.sources(thread: "/proc/self/task/\(thread)")
            // Under a filter the watch is not even tried, because the filter may kill the process.
            outcomes[.pageFaults] = PageFaultWatch(thread: thread) == nil ? .missing() : .works()
            return outcomes
        }
        let captures = CaptureProbe.result(mayUsePtrace: mayUsePtrace)
        outcomes[.read] = .init(captures.read)
        outcomes[.ptrace] = .init(captures.ptrace)
        outcomes[.signal] = .init(captures.signal)
        outcomes[.perf] = .init(captures.perf)
        outcomes[.processVMReadv] = processVMReadv(captures.memory)
        let symbols = SymbolProbe(executable: "/proc/self/exe", settings: symbolication)
        outcomes.merge(symbols.files()) { $1 }
        outcomes[.libdw] = symbols.libdw(isLoaded: loadsLibrary)
        outcomes[.flush] = flush
        outcomes[.context] = contextProblem().map { .missing($0) } ?? .works()
        return Capabilities(environment, outcomes)
    }

    private func processVMReadv(_ access: MemoryAccess?) -> Capabilities.Outcome {
        switch access {
        case .call: .works()
        case .file: .missing("memory is read through /proc/self/mem")
        case .pipe: .missing("memory is read through a pipe")
        case nil: .missing("memory cannot be read")
        }
    }

    private var flush: Capabilities.Outcome {
        guard let unflushed else { return .notTried("no file receives the reports") }
        return unflushed.isEmpty ? .works() : .missing(unflushed.joined(separator: ", "))
    }

    /// Calls `body` with the id of a thread that waits.
    private func waitingThread(
        _ body: (Int32) -> [Capabilities.FeatureName: Capabilities.Outcome]
    ) -> [Capabilities.FeatureName: Capabilities.Outcome] {
        (try? ProbedThread.run(isWaiting: true, body)) ?? [:]
    }
}

extension Capabilities.Outcome {
    init(_ attempt: CaptureProbe.Attempt) {
        switch attempt {
        case .works: self = .works()
        case .failed(let reason): self = .missing(reason)
        case .notTried(let reason): self = .notTried(reason)
        }
    }
}
