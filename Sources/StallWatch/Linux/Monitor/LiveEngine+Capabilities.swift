import LinuxSupport
import StackCapture
import StallReports
import StallSymbols
import Synchronization

extension LiveEngine {
    func capabilityProbe(mayUsePtrace: Bool?) -> CapabilityProbe {
        CapabilityProbe(
            symbolication: configuration.symbols.lookup, unflushed: reporter.unflushed, mayUsePtrace: mayUsePtrace)
    }

    func checkCapabilities() -> Capabilities {
        let probe = capabilityProbe(mayUsePtrace: state.withLock { $0.mayUsePtrace })
        return probe.capabilities(loadsLibrary: true)
    }
}

struct CapabilityProbe: Sendable {
    var symbolication: SymbolicationSettings
    /// The stores whose files cannot be flushed, with the reason; `nil` if there is no store.
    var unflushed: [String]?
    /// Whether the monitor's engine has found that ptrace works; `nil` before the monitor has started.
    var mayUsePtrace: Bool?

    /// Tries everything in some milliseconds, and stops no thread of the app; `loadsLibrary`: tries libdw, too.
    ///
    /// At the monitor's start it runs no task, tries nothing optional that takes long, and makes a second capture engine only
    /// if the monitor's own has found that ptrace is refused.
    func capabilities(loadsLibrary: Bool, isAtStart: Bool = false) -> Capabilities {
        if !isAtStart { PoolTasks.findPool() }
        let environment = HostProbe.environment()
        var outcomes = HostProbe.sources(triesPageFaults: !isAtStart)
        if isAtStart, mayUsePtrace == true {
            outcomes[.read] = outcomes[.syscall]
        } else {
            outcomes.merge(CaptureProbe.outcomes(mayUsePtrace: mayUsePtrace)) { $1 }
        }
        let symbols = SymbolProbe(executable: OwnExecutable.file, settings: symbolication)
        outcomes.merge(symbols.files()) { $1 }
        outcomes[.libdw] = symbols.libdw(isLoaded: loadsLibrary)
        outcomes[.flush] = flush
        outcomes[.pinnedThreads] = PoolTasks.problem.map { .missing($0) } ?? .works()
        outcomes[.context] = StallContext.calibration.problem.map { .missing($0) } ?? .works()
        return Capabilities(environment, outcomes)
    }

    private var flush: Capabilities.Outcome {
        guard let unflushed else { return .notTried("no file receives the reports") }
        return unflushed.isEmpty ? .works() : .missing(unflushed.joined(separator: ", "))
    }
}
