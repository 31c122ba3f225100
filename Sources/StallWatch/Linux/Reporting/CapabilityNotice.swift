import Glibc
import LinuxSupport
import StackCapture
import StallReports
import StallSymbols
import Synchronization

/// Tells the log what reports lack here, and keeps the capabilities where `stallwatch doctor` finds them.
final class CapabilityNotice: Sendable {
    private let probe: CapabilityProbe
    private let directory: String?
    private let reporter: Reporter
    private let file = Mutex<UnlinkedFile?>(nil)

    init(_ probe: CapabilityProbe, directory: String?, reporter: Reporter) {
        self.probe = probe
        self.directory = directory
        self.reporter = reporter
    }

    /// Tries the capabilities, logs the missing ones, and writes the file.
    func give() {
        let capabilities = probe.capabilities(loadsLibrary: false)
        reporter.logDegradation(capabilities)
        write(capabilities)
    }

    private func write(_ capabilities: Capabilities) {
        guard let directory else { return }
        let bytes = capabilities.jsonData()
        // Not under the lock, because a disk may hang.
        let written = UnlinkedFile(bytes, named: Capabilities.fileName, in: directory)
        file.withLock { $0 = written }
    }

    func withdraw() {
        file.withLock { $0 = nil }
    }
}

/// Tries what a monitor can do in this process.
struct CapabilityProbe: Sendable {
    var symbolication: SymbolicationSettings
    /// The stores whose files cannot be flushed, with the reason; `nil` if there is no store.
    var unflushed: [String]?
    /// Whether the monitor's engine has found that ptrace works; `nil` before the monitor has started.
    var mayUsePtrace: Bool?
    /// Returns why contexts cannot be read, in up to a millisecond; `nil` if they can.
    var contextProblem: @Sendable () -> String? = { nil }

    /// Tries everything in some milliseconds, and stops no thread of the app; `loadsLibrary`: tries libdw, too.
    func capabilities(loadsLibrary: Bool) -> Capabilities {
        let environment = HostProbe.environment()
        var outcomes = HostProbe.sources()
        outcomes.merge(CaptureProbe.outcomes(mayUsePtrace: mayUsePtrace)) { $1 }
        let symbols = SymbolProbe(executable: OwnExecutable.file, settings: symbolication)
        outcomes.merge(symbols.files()) { $1 }
        outcomes[.libdw] = symbols.libdw(isLoaded: loadsLibrary)
        outcomes[.flush] = flush
        outcomes[.context] = contextProblem().map { .missing($0) } ?? .works()
        return Capabilities(environment, outcomes)
    }

    private var flush: Capabilities.Outcome {
        guard let unflushed else { return .notTried("no file receives the reports") }
        return unflushed.isEmpty ? .works() : .missing(unflushed.joined(separator: ", "))
    }
}

/// An unlinked file that lives as long as this object: found through /proc/<pid>/fd, also from outside of a container.
final class UnlinkedFile: Sendable {
    private let descriptor: KeptDescriptor

    /// Writes the file, which readers find by the link's end `/.<name>.<identity>.tmp (deleted)`; `nil` if that fails.
    init?(_ bytes: [UInt8], named name: String, in directory: String) {
        let owner = ProcessIdentity.current() ?? ProcessIdentity(pid: getpid(), startTicks: 0, bootID: "unknown")
        let path = ReportDirectory.temporaryPath(for: name, in: directory, of: owner)
        guard let descriptor = try? AtomicFile.create(path) else { return nil }
        unlink(path)
        guard writeAll(bytes, to: descriptor) == nil else {
            close(descriptor)
            return nil
        }
        self.descriptor = KeptDescriptor(descriptor)
    }

    deinit { descriptor.close() }
}
