/// Gives addresses their names. Used by one thread, never a monitored one.
protocol Symbolicating: AnyObject {
    /// The mangled name of the function at the virtual address `offset` of `image`'s file, or `nil` if it is not known.
    func symbol(at offset: UInt64, in image: LoadedImage) -> String?
}

/// Names from the symbol tables of the images' own files, each read when it is first needed.
final class SymbolTableSymbolicator: Symbolicating {
    /// Tables by path and build ID, so that an image that is replaced on disk by a newer one is read again.
    private var tables: [LoadedImage: ELFSymbolTable?] = [:]

    /// Images whose tables are kept; past it, all are given back and read again as they are needed.
    static let maximumTables = 64

    func symbol(at offset: UInt64, in image: LoadedImage) -> String? {
        table(of: image)?.symbol(at: offset)?.name
    }

    private func table(of image: LoadedImage) -> ELFSymbolTable? {
        if let known = tables[image] { return known }
        if tables.count >= Self.maximumTables { tables.removeAll() }
        // The executable through /proc, which finds it even when its file has been moved or deleted.
        let table = try? ELFSymbolTable(path: image.isExecutable ? "/proc/self/exe" : image.path)
        tables[image] = .some(table)
        return table
    }
}
