/// The names and lines of one image, from its own file and its debug file, which are read when they are first needed.
final class ImageSymbols {
    private let image: ImageIdentity
    private let files: DebugFiles
    private var isOpened = false
    private var file: ELFFile?
    private var debugFile: ELFFile??
    private var names: ELFSymbolTable?
    private var triedNames = false
    private var debugInformation: Result<DebugInformation, DebugInformation.UnavailableReason>?
    /// The reason why the image's own file is not used.
    private var missing: String?

    init(_ image: ImageIdentity, files: DebugFiles) {
        self.image = image
        self.files = files
    }

    /// The known memory use in bytes.
    var memoryBytes: Int {
        (names?.memoryBytes ?? 0) + ((try? debugInformation?.get())?.memoryBytes ?? 0)
    }

    /// The reason why requested names or lines of this image are missing; `nil` if none are.
    var reason: String? {
        var reasons: [String] = []
        if case .failure(let unavailable) = debugInformation {
            // A missing file explains the rest.
            reasons.append(missing ?? unavailable.reason)
        } else if debugInformation == nil, let missing {
            reasons.append(missing)
        }
        if triedNames, names == nil { reasons.append("no symbol table was found") }
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }

    /// Whether the debug information exceeds the memory limit.
    var isTooLarge: Bool {
        if case .failure(.tooLarge) = debugInformation { return true }
        return false
    }

    /// Forgets that the memory limit was exceeded: there may be memory now.
    func retryDebugInformation() {
        if isTooLarge { debugInformation = nil }
    }

    /// Finds the functions at the file's virtual address `address`.
    ///
    /// The debug information may use up to `maximumBytes`.
    func lookUp(_ address: UInt64, lines: Bool, deadline: UInt64, maximumBytes: Int) -> CodeLookup {
        guard lines, case .success(let information) = openDebugInformation(maximumBytes: maximumBytes) else {
            let name = name(at: address)
            let isLibrarys =
                name == nil
                && (names?.isAmongLibraries(address) == true || file?.isInLinkageTable(address) == true)
            return CodeLookup(
                locations: [CodeLocation(symbol: name)], isOutsideDebugInformation: isLibrarys)
        }
        var (locations, unavailable) = information.locations(at: address, deadline: deadline)
        if locations.isEmpty { locations = [CodeLocation()] }
        // Other tools show the linker's name (`read`, not `__libc_read` of the debug information). It also tells a
        // split-off part from its function.
        if let name = name(at: address) {
            locations[locations.count - 1].isUnlisted = locations[locations.count - 1].symbol == nil
            locations[locations.count - 1].symbol = name
        }
        return CodeLookup(
            locations: locations, reason: unavailable.map(\.reason),
            isOutsideDebugInformation: unavailable == .notCovered, isUnfinished: unavailable == .outOfTime
        )
    }

    private func open() {
        if isOpened { return }
        isOpened = true
        do {
            file = try files.file(of: image)
        } catch {
            missing = error.reason
        }
    }

    private func openDebugFile() -> ELFFile? {
        if let debugFile { return debugFile }
        let found = files.debugFile(of: image, file: file)
        debugFile = .some(found)
        return found
    }

    /// Returns the mangled name of the function at the file's virtual address `address`.
    func name(at address: UInt64) -> String? { openNames()?.symbol(at: address)?.name }

    /// Returns the function that the direct call before `returnAddress` names; `nil` if there is none.
    func calledFunction(before returnAddress: UInt64) -> CalledFunction? {
        open()
        return file?.callTarget(before: returnAddress).flatMap { function(startingAt: $0) }
    }

    /// Returns the function that starts at the file's virtual address `address`; `nil` if there is none.
    func function(startingAt address: UInt64) -> CalledFunction? {
        guard let names = openNames(), var function = names.function(startingAt: address) else { return nil }
        let target =
            function.isThunk ? file?.lastJumpTarget(in: function.addresses) : file?.jumpTarget(at: address)
        function.destination = target.flatMap { names.function(startingAt: $0)?.addresses }
        return function
    }

    /// Returns the symbol of the function that the call before `returnAddress` reaches through the PLT.
    func importedSymbol(calledBefore returnAddress: UInt64) -> String? {
        open()
        return file?.importedSymbol(calledBefore: returnAddress)
    }

    /// Returns the function that the image exports with that symbol.
    func exportedFunction(_ symbol: String) -> CalledFunction? {
        open()
        return file?.exportedFunction(symbol).flatMap { function(startingAt: $0) }
    }

    /// Returns the functions before and after `address`, up to `count` of each.
    func functions(near address: UInt64, count: Int) -> [ELFSymbolTable.Symbol] {
        openNames()?.functions(near: address, count: count) ?? []
    }

    private func openNames() -> ELFSymbolTable? {
        if !triedNames {
            triedNames = true
            open()
            names = file.flatMap { try? ELFSymbolTable(file: $0) }
            // A stripped image still has its exported names; its debug file has all names.
            if names?.isComplete != true, let better = openDebugFile().flatMap({ try? ELFSymbolTable(file: $0) }),
                better.isComplete || names == nil
            {
                names = better
            }
        }
        return names
    }

    private func openDebugInformation(
        maximumBytes: Int
    ) -> Result<DebugInformation, DebugInformation.UnavailableReason> {
        if let debugInformation { return debugInformation }
        open()
        var result: Result<DebugInformation, DebugInformation.UnavailableReason> = .failure(.absent)
        func read(_ file: ELFFile) -> Result<DebugInformation, DebugInformation.UnavailableReason> {
            Result { () throws(DebugInformation.UnavailableReason) in
                try DebugInformation(file: file, maximumBytes: maximumBytes)
            }
        }
        if let file { result = read(file) }
        if case .failure(.absent) = result, let debugFile = openDebugFile() { result = read(debugFile) }
        debugInformation = result
        return result
    }
}
