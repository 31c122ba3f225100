package import StallReports

/// Derives names and owners from functions' mangled names.
///
/// This takes longer than everything else that a report's frame needs, and stacks consist of the same few functions, so
/// the results are kept. Only one thread uses it, never a monitored one.
final class FunctionClassifier {
    /// The most functions, and source files, that are kept: a function takes some 300 bytes.
    static let maximumFunctions = 4096

    struct Function {
        /// The demangled name, or the symbol if it is not mangled.
        var name: String
        var isRuntimeFrame: Bool
        /// The reason why the compiler generated it; `nil` for a function that may be in the source.
        var compilerGenerated: StallReport.GeneratedCode?
        /// The Swift module that contains it; `nil` for a function of another language.
        var module: String?
        /// The library that has functions with such names; `nil` for a Swift function.
        var library: RuntimeLibrary?
    }

    private let excludedModules: Set<String>
    private let includedModules: Set<String>
    private var functions: [String: Function] = [:]
    /// The owner of each source file, by its path and the directory that it was compiled in.
    private var sources: [SourceFile: CodeOwner] = [:]

    private struct SourceFile: Hashable {
        var path: String
        var directory: String?
    }

    init(_ settings: InAppSettings) {
        excludedModules = Set(settings.excludedModules)
        includedModules = Set(settings.includedModules).subtracting(settings.excludedModules)
    }

    subscript(symbol: String) -> Function {
        if let known = functions[symbol] { return known }
        let name = Demangler.functionName(symbol)
        let module = SwiftModule.of(symbol)
        let generated = StallReport.GeneratedCode(function: name)
        let function = Function(
            name: name,
            isRuntimeFrame: RuntimeFrame.contains(function: name, generated: generated, symbol: symbol),
            compilerGenerated: generated,
            module: module, library: module == nil ? RuntimeLibrary(symbol: symbol) : nil
        )
        if functions.count >= Self.maximumFunctions { functions.removeAll() }
        functions[symbol] = function
        return function
    }

    /// Determines the owner of code in an image that belongs to the app or contains it.
    ///
    /// `isOutsideDebugInformation`: Whether the image has debug information that does not cover the address.
    /// `isForeign`: Whether the image's code is a dependency's where its debug information does not say more.
    func owner(
        of location: CodeLocation, isOutsideDebugInformation: Bool = false, isForeign: Bool = false
    ) -> CodeOwner {
        let function = location.symbol.map { self[$0] }
        let source = source(of: location)
        if let module = function?.module {
            if excludedModules.contains(module) { return .dependency }
            if includedModules.contains(module) { return .app }
            if SwiftModule.ofLibraries.contains(module) { return .library }
            if let source { return source }
            // The place where it was compiled is unknown.
            return location.directory != nil || includedModules.isEmpty && !isForeign ? .app : .dependency
        }
        if let source { return source }
        if function?.library != nil { return .library }
        // Code of C has no module: where the app names its own, what has no source is a package's, except main.swift's.
        let isPackages = !includedModules.isEmpty && location.symbol != nil && location.symbol != "main"
        let isUnknown = location.directory == nil && (isForeign || isPackages)
        return isOutsideDebugInformation || isUnknown ? .dependency : .app
    }

    /// Returns the owner of the source file; `nil` if the file is unknown.
    private func source(of location: CodeLocation) -> CodeOwner? {
        guard let file = location.declaration?.file ?? location.file else { return nil }
        let source = SourceFile(path: file, directory: location.directory)
        if let known = sources[source] { return known }
        let isCheckedOut = PackageCheckout.contains(file, compiledIn: location.directory)
        let owner = Self.isOfSystem(file) ? CodeOwner.library : isCheckedOut ? .dependency : .app
        if sources.count >= Self.maximumFunctions { sources.removeAll() }
        sources[source] = owner
        return owner
    }

    /// Returns whether the file is a header of the system, of a compiler or of the Swift toolchain, or a source of
    /// Rust's library.
    static func isOfSystem(_ file: String) -> Bool {
        // Not only at the beginning: a Swift SDK has a root of its own.
        file.hasPrefix("/usr/lib/") || file.containsBytes(of: "/usr/include/")
            || file.containsBytes(of: "/usr/local/include/") || file.containsBytes(of: "/lib/gcc/")
            || file.containsBytes(of: "/usr/lib/swift/")
            || file.containsBytes(of: "/usr/lib/swift_static/") || file.containsBytes(of: "/usr/lib/clang/")
            || isOfCompiler(file)
    }

    private static func isOfCompiler(_ file: String) -> Bool {
        // A C++ compiler of Nix, conda or a build tool has a root of its own, too.
        if file.containsBytes(of: "/include/c++/") { return true }
        // Where Rust's library was compiled, and where rustup puts its sources.
        return file.hasPrefix("/rustc/") || file.hasPrefix("/rust/deps/")
            || file.containsBytes(of: "/lib/rustlib/src/rust/")
    }
}

enum CodeOwner: Equatable {
    case app
    /// A package's that the app depends on, or a library's that was compiled elsewhere.
    case dependency
    /// The system's, the Swift toolchain's, or ours.
    case library
}

/// Frames that only pass a call on, which readers may fold.
enum RuntimeFrame {
    /// The prefixes of the symbols that run run loops, queues, jobs and threads.
    private static let systemsOwn = [
        "__CFRUNLOOP_IS_", "__CFRunLoop", "_CFRunLoop", "CFRunLoopRun", "__CFMachPort", "_dispatch_",
        "__libc_start", "swift_job_run", "swift_task_run", "_ZN5swift34runJobInEstablishedExecutorContext",
        "_ZL23swift_job_runImpl", "$s10Foundation7RunLoopC3run", "$s10Foundation7RunLoopC13CurrentMode",
    ]
    private static let systemsOwnExactly: Set<String> = [
        "_start", "start_thread", "clone", "clone3", "__clone", "__clone3",
    ]
    /// The entry of an async program: the compiler's for an `@main` type, which then has no line, else the code of `main.swift`.
    static let asyncMain: Set<String> = ["async_Main", "async_MainTQ0_"]

    static func contains(function: String, generated: StallReport.GeneratedCode?, symbol: String) -> Bool {
        [.thunk, .outlined, .metadata].contains(generated) || function.hasSuffix(".$main()")
            || systemsOwnExactly.contains(symbol) || systemsOwn.contains { symbol.hasPrefix($0) }
    }
}

/// Returns whether the source file at `path` is an expansion of a macro.
///
/// The compiler names it after the mangled name of the expansion. It lies in `swift-generated-sources` of the directory
/// for temporary files, of whatever package the code is, and may be gone (SourceManager.cpp of the Swift compiler:
/// `dumpExpandedMacro…`).
func isMacroExpansion(_ path: String) -> Bool { path.containsBytes(of: "/@__swiftmacro_") }

/// Tells sources that the package manager has fetched from sources of the app.
enum PackageCheckout {
    /// The folders in the package manager's scratch directory (`.build`, `SourcePackages`) with the dependencies' sources.
    ///
    /// The first has Git checkouts, the second has archives from a package registry (Workspace+Configuration.swift).
    private static let folders = ["/checkouts/", "/registry/downloads/"].map { Array($0.utf8) }

    /// Returns whether Rust's package manager has fetched the source; its compiler runs in the dependency's folder.
    private static func isOfCargo(_ path: String) -> Bool {
        path.containsBytes(of: "cargo/registry/src/") || path.containsBytes(of: "cargo/git/checkouts/")
    }

    /// Returns whether the source file at `path` belongs to a dependency.
    ///
    /// The compiler runs in the root package's directory. A folder of such a name around that is not the manager's.
    static func contains(_ path: String, compiledIn directory: String?) -> Bool {
        if isOfCargo(path) { return true }
        let path = Array(path.utf8)
        let directory = directory.map { Array($0.utf8) + [UInt8(ascii: "/")] } ?? []
        return folders.contains { folder in
            path.indices.contains { start in
                path[start...].starts(with: folder) && !directory.starts(with: path[..<(start + folder.count)])
            }
        }
    }
}

/// Which images are the app's own: the executable unless it is an interpreter, and what lies outside the directories where systems and toolchains put
/// theirs.
///
/// A frame in such an image is not the app's if it is code of a library linked into it; see ``FunctionClassifier``.
package struct InAppRule {
    static let systemDirectories = [
        "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
        "/usr/local/lib32", "/usr/local/lib64",
    ]

    /// Directories of files that do not last.
    private static let temporaryDirectories = ["/tmp", "/var/tmp", "/dev/shm"]

    private let excludedDirectories: [String]
    /// Folders with the toolchain's libraries and the program's own, as beside an executable that was copied with both.
    private let bundles: Set<String>
    /// The beginnings of the names of the toolchain's libraries, and of those that it needs.
    private static let toolchainLibraries = [
        "libswift", "lib_", "libFoundation", "libdispatch", "libBlocksRuntime", "libXCTest", "libTesting", "libc.so",
        "libm.so", "ld-linux", "libstdc++", "libgcc_s", "libxml2", "libcurl", "libicu", "libz.so",
    ]

    /// One of the paths of the process's images tells where the toolchain's libraries are.
    package init(_ settings: InAppSettings, imagePaths: some Sequence<String>) {
        let runtimes = imagePaths.filter { $0.hasSuffix("/libswiftCore.so") }.map { directory(of: $0) }
        let toolchains = runtimes.filter { $0.hasSuffix("/swift/linux") }
        excludedDirectories = Self.systemDirectories + toolchains + settings.excludedDirectories
        bundles = Set(runtimes).subtracting(toolchains)
    }

    package func isInApp(imageAt path: String, isExecutable: Bool) -> Bool {
        if isExecutable { return StallReport.interpretedLanguage(ofExecutable: path) == nil }
        guard path.hasPrefix("/") else { return false }
        if bundles.contains(directory(of: path)) {
            let name = path.dropFirst(directory(of: path).count + 1)
            if Self.toolchainLibraries.contains(where: { name.hasPrefix($0) }) { return false }
        }
        return !excludedDirectories.contains { path.hasPrefix($0 + "/") }
    }

    /// Whether an image without debug information is a dependency, such as a plug-in: it was not installed with the
    /// executable, below its folder or the one around its `bin`.
    static func isForeign(imageAt path: String, executable: String) -> Bool {
        guard path.hasPrefix("/"), path != executable else { return false }
        if temporaryDirectories.contains(where: { path.hasPrefix($0 + "/") }) { return true }
        var folder = directory(of: executable)
        if folder.hasSuffix("/bin") { folder = directory(of: folder) }
        return !folder.isEmpty && !path.hasPrefix(folder + "/")
    }
}

/// The part of a path before its last slash.
func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "" }
    return String(path[..<slash])
}
