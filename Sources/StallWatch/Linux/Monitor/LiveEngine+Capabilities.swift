import LinuxSupport
import StackCapture
import StallReports
import StallSymbols
import Synchronization

extension LiveEngine {
    func capabilityProbe(_ captures: CaptureProbe.Outcomes) -> CapabilityProbe {
        CapabilityProbe(
            symbolication: configuration.symbols.lookup, unflushed: reporter.unflushed, captures: captures)
    }

    func capabilities(loadsLibrary: Bool) -> Capabilities {
        capabilityProbe(state.withLock { $0.captures }).capabilities(loadsLibrary: loadsLibrary)
    }

    func checkCapabilities() -> Capabilities { capabilities(loadsLibrary: true) }
}

struct CapabilityProbe: Sendable {
    var symbolication: SymbolicationSettings
    /// The stores whose files cannot be flushed, with the reason; `nil` if there is no store.
    var unflushed: [String]?
    /// What the monitor's start and its proofs have shown of captures; empty before the start.
    var captures: CaptureProbe.Outcomes = [:]

    /// Tries what is not known in some milliseconds, and stops no thread of the app; `loadsLibrary`: tries libdw, too.
    func capabilities(loadsLibrary: Bool) -> Capabilities {
        PoolTasks.findPool()
        var outcomes = HostProbe.sources()
        if captures.isEmpty { outcomes.merge(CaptureProbe.outcomes()) { $1 } }
        outcomes[.read] = outcomes[.read] ?? outcomes[.syscall]
        let symbols = SymbolProbe(executable: OwnExecutable.file, settings: symbolication)
        outcomes.merge(symbols.files()) { $1 }
        outcomes[.libdw] = symbols.libdw(isLoaded: loadsLibrary)
        outcomes.merge(found) { $1 }
        return Capabilities(HostProbe.environment(), outcomes)
    }

    /// What is known without a trial, as right after the start; all else was not tried.
    var known: Capabilities {
        var outcomes = found
        let environment = HostProbe.environment()
        if environment.isProcForeign == true { outcomes[.read] = .missing() }
        return Capabilities(environment, outcomes)
    }

    private var found: CaptureProbe.Outcomes {
        var outcomes = captures
        outcomes[.flush] = flush
        outcomes[.pinnedThreads] = PoolTasks.problem.map { .missing($0) } ?? .works()
        outcomes[.context] = StallContext.calibration.problem.map { .missing($0) } ?? .works()
        return outcomes
    }

    private var flush: Capabilities.Outcome {
        guard let unflushed else { return .notTried("no file receives the reports") }
        return unflushed.isEmpty ? .works() : .missing(unflushed.joined(separator: ", "))
    }
}
