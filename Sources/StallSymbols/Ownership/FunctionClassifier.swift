import StallReports

/// Derives names and owners from functions' mangled names.
///
/// This takes longer than everything else that a report's frame needs, and stacks consist of the same few functions, so
/// the results are kept. Only one thread uses it, never a monitored one.
final class FunctionClassifier {
    /// The largest number of functions to keep, and of source files.
    ///
    /// A function takes some 300 bytes.
    static let maximumFunctions = 4096

    struct Function {
        /// The demangled name, or the symbol if it is not mangled.
        var name: String
        /// Whether the function only passes a call on.
        var isRuntimeFrame: Bool
        /// The reason why the compiler generated it; `nil` for a function that may be in the source.
        var compilerGenerated: StallReport.CompilerGenerated?
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
        let generated = StallReport.CompilerGenerated(function: name)
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
    /// - Parameters:
    ///   - location: The function and where it was compiled.
    ///   - isOutsideDebugInformation: Whether the image has debug information that does not cover the address.
    /// - Returns: The owner of the code.
    func owner(of location: CodeLocation, isOutsideDebugInformation: Bool = false) -> CodeOwner {
        let function = location.symbol.map { self[$0] }
        return owner(of: location, function, isOutsideDebugInformation: isOutsideDebugInformation)
    }

    /// The same for a location whose function has been looked up.
    func owner(of location: CodeLocation, _ function: Function?, isOutsideDebugInformation: Bool) -> CodeOwner {
        let source = source(of: location)
        if let module = function?.module {
            if excludedModules.contains(module) { return .dependency }
            if includedModules.contains(module) { return .app }
            if SwiftModule.ofLibraries.contains(module) { return .library }
            if let source { return source }
            // The place where it was compiled is unknown.
            return includedModules.isEmpty || location.directory != nil ? .app : .dependency
        }
        if let source { return source }
        if function?.library != nil { return .library }
        return isOutsideDebugInformation ? .dependency : .app
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

    /// Returns whether the file is a header of the system, the compiler or the Swift toolchain.
    static func isOfSystem(_ file: String) -> Bool {
        file.hasPrefix("/usr/include/") || file.hasPrefix("/usr/lib/") || file.hasPrefix("/usr/local/include/")
            || file.containsBytes(of: "/usr/lib/swift/")
            || file.containsBytes(of: "/usr/lib/swift_static/") || file.containsBytes(of: "/usr/lib/clang/")
    }
}
