/// The names and lines of one image, from its own file and its debug file, which are read when they are first needed.
final class ImageSymbols {
    private let image: ImageIdentity
    /// `nil` if no file may be read.
    private let files: DebugFiles?
    private lazy var file: ELFFile? = openFile()
    private lazy var debugFile: ELFFile? = files?.debugFile(of: image, file: file)
    private var names: ELFSymbolTable?
    private var triedNames = false
    private var debugInformation: Result<DebugInformation, DebugInformation.UnavailableReason>?
    private var missing: String?
    private var hasReadingFailed = false

    init(_ image: ImageIdentity, files: DebugFiles?) {
        self.image = image
        self.files = files
    }

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
        // If lines were requested, that they are missing is the reason of both.
        if debugInformation == nil, names?.isComplete == false {
            reasons.append("only functions that it exports have names")
        }
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }

    var isTooLarge: Bool {
        if case .failure(.tooLarge) = debugInformation { return true }
        return false
    }

    /// Whether what was not found may be found later: a file could not be opened or read, or memory was short.
    var mayFindMoreLater: Bool { hasReadingFailed || missing != nil && names == nil }

    /// Drops debug information that was refused for memory, so that the next lookup loads it again.
    func retryDebugInformation() { debugInformation = nil }

    /// Finds the functions at a virtual address; the debug information may use up to `maximumBytes`.
    func lookUp(_ address: UInt64, lines: Bool, deadline: UInt64, maximumBytes: Int) -> ResolvedAddress {
        guard lines, case .success(let information) = openDebugInformation(maximumBytes: maximumBytes) else {
            let name = name(at: address)
            let isLibrarys =
                name == nil
                && (names?.isAmongLibraries(address) == true || file?.isInLinkageTable(address) == true)
            return ResolvedAddress(
                locations: [CodeLocation(symbol: name)], isOutsideDebugInformation: isLibrarys)
        }
        var (locations, unavailable) = information.locations(at: address, deadline: deadline)
        if unavailable == .noMemory { hasReadingFailed = true }
        if locations.isEmpty { locations = [CodeLocation()] }
        // Other tools show the linker's name (`read`, not DWARF's `__libc_read`), which also tells split-off parts.
        if let name = name(at: address) {
            locations[locations.count - 1].isUnlisted = locations[locations.count - 1].symbol == nil
            locations[locations.count - 1].symbol = name
        }
        return ResolvedAddress(
            locations: locations, reason: unavailable.map(\.reason),
            isOutsideDebugInformation: unavailable == .notCovered, isUnfinished: unavailable == .outOfTime
        )
    }

    private func openFile() -> ELFFile? {
        guard let files else {
            missing = "its file system does not answer"
            return nil
        }
        do {
            return try files.file(of: image)
        } catch {
            missing = error.reason
            return nil
        }
    }

    func name(at address: UInt64) -> String? { openNames()?.symbol(at: address)?.name }

    func calledFunction(before returnAddress: UInt64) -> CalledFunction? {
        file?.lastTarget(of: .call, in: 0..<returnAddress).flatMap { function(startingAt: $0) }
    }

    func function(startingAt address: UInt64) -> CalledFunction? {
        guard let names = openNames(), var function = names.function(startingAt: address) else { return nil }
        let target =
            function.isThunk
            ? file?.lastTarget(of: .jump, in: function.addresses) : file?.jumpTarget(at: address)
        function.destination = target.flatMap { names.function(startingAt: $0)?.addresses }
        return function
    }

    func importedSymbol(calledBefore returnAddress: UInt64) -> String? {
        file?.importedSymbol(calledBefore: returnAddress)
    }

    func exportedFunction(_ symbol: String) -> CalledFunction? {
        file?.exportedFunction(symbol).flatMap { function(startingAt: $0) }
    }

    func functions(near address: UInt64, count: Int) -> [ELFSymbolTable.Symbol] {
        openNames()?.functions(near: address, count: count) ?? []
    }

    private func openNames() -> ELFSymbolTable? {
        if !triedNames {
            triedNames = true
            names = table(of: file)
            // A stripped image still has its exported names; its debug file has all names.
            if names?.isComplete != true, let better = table(of: debugFile), better.isComplete || names == nil {
                names = better
            }
        }
        return names
    }

    private func table(of file: ELFFile?) -> ELFSymbolTable? {
        guard let file else { return nil }
        do {
            return try ELFSymbolTable(file: file)
        } catch {
            hasReadingFailed = true
            return nil
        }
    }

    private func openDebugInformation(
        maximumBytes: Int
    ) -> Result<DebugInformation, DebugInformation.UnavailableReason> {
        if let debugInformation { return debugInformation }
        func read(_ file: ELFFile?) -> Result<DebugInformation, DebugInformation.UnavailableReason> {
            guard let file else { return .failure(.absent) }
            return Result { () throws(DebugInformation.UnavailableReason) in
                try DebugInformation(file: file, maximumBytes: maximumBytes)
            }
        }
        var result = read(file)
        if case .failure(.absent) = result { result = read(debugFile) }
        if case .failure(let unavailable) = result, unavailable == .noMemory || unavailable == .unreadable {
            hasReadingFailed = true
        }
        debugInformation = result
        return result
    }
}
