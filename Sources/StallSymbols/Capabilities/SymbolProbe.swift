package import StallReports
import LinuxSupport
import Glibc

/// Tries what the names and lines of the executable's frames need.
package struct SymbolProbe {
    private let executable: String
    private let settings: SymbolicationSettings

    /// Creates a probe.
    ///
    /// - Parameters:
    ///   - executable: The path of the executable, such as `/proc/self/exe`.
    ///   - settings: The settings of the symbolication: what they do not ask for is not tried.
    package init(executable: String, settings: SymbolicationSettings = .lines) {
        self.executable = executable
        self.settings = settings
    }

    /// Tries whether libdw can be used.
    ///
    /// - Parameter isLoaded: Whether to load it. If not, only its file is searched for: a program that never stalls
    ///   never loads libdw.
    /// - Returns: The outcome.
    package func libdw(isLoaded: Bool) -> Capabilities.Outcome {
        guard settings.detail == .lines else { return Self.noLines }
        if isLoaded {
            return DebugInformation.hasLibrary
                ? .works() : .missing("libdw.so.1 is not installed, or the executable is static and cannot load it")
        }
        let isInstalled = Self.libraryDirectories.contains { access("\($0)/libdw.so.1", R_OK) == 0 }
        return isInstalled
            ? .works("installed; loaded for the first report") : .missing("libdw.so.1 is not installed")
    }

    /// Returns whether the executable, or its debug file, has symbols and debug information.
    ///
    /// Reads their section headers.
    package func files() -> [Capabilities.FeatureName: Capabilities.Outcome] {
        guard settings.detail != .none else {
            let outcome = Capabilities.Outcome.notTried("the configuration asks for no names")
            return [.symbols: outcome, .debugInformation: outcome]
        }
        guard let file = try? ELFFile(path: executable) else {
            let outcome = Capabilities.Outcome.missing("\(executable) cannot be read")
            return [.symbols: outcome, .debugInformation: outcome]
        }
        func outcome(_ isThere: (ELFFile) -> Bool) -> Capabilities.Outcome {
            if isThere(file) { return .works() }
            guard let debugFile = debugFile(of: file), isThere(debugFile) else { return .missing() }
            return .works(debugFile.path)
        }
        return [
            .symbols: outcome(\.hasSymbolTable),
            .debugInformation: settings.detail == .lines
                ? outcome { ((try? $0.namedSections())?[".debug_info"]?.size ?? 0) > 0 } : Self.noLines,
        ]
    }

    private func debugFile(of file: ELFFile) -> ELFFile? {
        let image = ImageIdentity(
            path: readLink(executable) ?? executable, buildID: (try? file.buildID()).flatMap { $0 }
        )
        return DebugFiles(directories: settings.debugDirectories).debugFile(of: image, file: file)
    }

    private static let noLines = Capabilities.Outcome.notTried("the configuration asks for no lines")

    /// The directories in which distributions put libraries, after those of LD_LIBRARY_PATH (ld.so(8)).
    private static var libraryDirectories: [String] {
        let named = getenv("LD_LIBRARY_PATH").map { String(cString: $0).split(separator: ":").map(String.init) } ?? []
        #if arch(arm64)
            let architecture = "aarch64-linux-gnu"
        #else
            let architecture = "x86_64-linux-gnu"
        #endif
        return named + ["/usr/lib/\(architecture)", "/lib/\(architecture)", "/usr/lib64", "/lib64", "/usr/lib", "/lib"]
    }
}
