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
        /// Whether it is not a library's that was compiled into the app.
        var isInApp: Bool
    }

    private let excludedModules: Set<String>
    private var functions: [String: Function] = [:]

    init(_ settings: InAppSettings) {
        excludedModules = Set(settings.excludedModules)
    }

    subscript(symbol: String) -> Function {
        if let known = functions[symbol] { return known }
        let name = Demangler.functionName(symbol)
        let function = Function(
            name: name, isRuntimeFrame: RuntimeFrame.contains(function: name, symbol: symbol), isInApp: isInApp(symbol)
        )
        if functions.count >= Self.maximumFunctions { functions.removeAll() }
        functions[symbol] = function
        return function
    }

    /// Whether code in an image of the app's is the app's own.
    func isInApp(_ location: CodeLocation) -> Bool {
        if let file = location.file, file.hasPrefix("/usr/include/") || file.hasPrefix("/usr/lib/") { return false }
        return location.symbol.map { self[$0].isInApp } ?? true
    }

    private func isInApp(_ symbol: String) -> Bool {
        guard let module = FunctionOwner.swiftModule(of: symbol) else { return !FunctionOwner.isStandardCxx(symbol) }
        return !FunctionOwner.libraryModules.contains(module) && !excludedModules.contains(module)
    }
}
