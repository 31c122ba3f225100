import StallReports

/// What follows from functions' mangled names.
///
/// It is the same each time and takes longer to find out than all else that a report's frame needs, so it is kept: stacks
/// are made of the same few functions. Used by one thread, never a monitored one.
final class FunctionClassifier {
    /// Functions that are kept.
    ///
    /// Some 300 bytes each.
    static let maximumFunctions = 4096

    struct Function {
        /// As it was written, or the symbol where that is not mangled.
        var name: String
        /// Whether it only passes a call on.
        var isRuntimeFrame: Bool
        /// What the compiler made it for; `nil` for a function that may have been written.
        var compilerGenerated: StallReport.CompilerGenerated?
        /// The Swift module that it was written in; `nil` for a function of another language.
        var module: String?
        /// The library that its name belongs to; `nil` for a Swift function.
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

    /// Whose code it is, of an image that is the app's or has the app linked into it.
    ///
    /// - Parameters:
    ///   - location: The function and where it was compiled.
    ///   - isOutsideDebugInformation: Whether the image has debug information that does not cover the address.
    /// - Returns: The owner of the code.
    func owner(of location: CodeLocation, isOutsideDebugInformation: Bool = false) -> CodeOwner {
        let function = location.symbol.map { self[$0] }
        let source = source(of: location)
        if let module = function?.module {
            if excludedModules.contains(module) { return .dependency }
            if includedModules.contains(module) { return .app }
            if SwiftModule.ofLibraries.contains(module) { return .library }
            if let source { return source }
            // Nothing says where it was compiled.
            return includedModules.isEmpty || location.directory != nil ? .app : .dependency
        }
        if let source { return source }
        if function?.library != nil { return .library }
        return isOutsideDebugInformation ? .dependency : .app
    }

    /// Whose source file it is; `nil` where none is known.
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

    /// Whether it is a header of the system, the compiler or the Swift toolchain, wherever that is installed.
    static func isOfSystem(_ file: String) -> Bool {
        file.hasPrefix("/usr/include/") || file.hasPrefix("/usr/lib/") || file.hasPrefix("/usr/local/include/")
            || file.containsBytes(of: "/usr/lib/swift/")
            || file.containsBytes(of: "/usr/lib/swift_static/") || file.containsBytes(of: "/usr/lib/clang/")
    }
}
