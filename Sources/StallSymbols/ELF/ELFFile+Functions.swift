package import StallReports
import Glibc

/// Where a file's functions are.
extension ELFFile {
    /// Its symbols and their names.
    struct SymbolSections {
        let symbols: Section
        let names: Section
        /// Whether this is `.symtab`: `.dynsym` lacks the functions that are not exported.
        let isComplete: Bool
    }

    /// A function, with the virtual addresses that it has in the file.
    package struct Function {
        package let name: String
        package let addresses: Range<UInt64>

        package init(
            name: String,
            addresses: Range<UInt64>
        ) {
            self.name = name
            self.addresses = addresses
        }
    }

    /// Bytes of names that ``functions(where:)`` reads.
    ///
    /// A file with more is refused. Those of libc are 32 kB.
    static let maximumFunctionNamesBytes = 8 << 20

    /// `.symtab` if the file has one, else `.dynsym`; `nil` if it has neither.
    func symbolSections() throws(StallWatchError) -> SymbolSections? {
        let sections = try sections()
        let complete = sections.first { $0.type == Self.symbolTable }
        guard let symbols = complete ?? sections.first(where: { $0.type == Self.dynamicSymbolTable }) else {
            return nil
        }
        guard sections.indices.contains(Int(symbols.link)) else {
            throw StallWatchError(.unreadableImage, "\(path) is damaged: its symbol table names no string table")
        }
        return SymbolSections(symbols: symbols, names: sections[Int(symbols.link)], isComplete: complete != nil)
    }

    /// Whether the file has the names of all its functions, and not only of those that it exports.
    package var hasSymbolTable: Bool { (try? symbolSections())?.isComplete == true }

    /// The functions with the names that are wanted.
    ///
    /// For a few of them that are looked for once: what was read is given back, and the symbols are read a piece at a time,
    /// so that little memory is taken meanwhile. Left out are those without a size, as assembly may leave them: where they
    /// end, only the others tell. ``ELFSymbolTable`` is for many addresses.
    package func functions(where isWanted: (String) -> Bool) throws(StallWatchError) -> [Function] {
        guard let found = try symbolSections() else { return [] }
        let names = try bytes(of: found.names, atMost: Self.maximumFunctionNamesBytes)
        // About a page.
        let piece = UInt64(170 * Self.symbolBytes)
        var functions: [Function] = []
        for start in stride(from: 0, to: found.symbols.size, by: Int(piece)) {
            let (offset, overflow) = found.symbols.offset.addingReportingOverflow(start)
            // An offset past any file's end, which is refused as such.
            let table = try bytes(
                at: overflow ? .max : offset, count: min(piece, found.symbols.size - start), atMost: Int(piece)
            )
            for number in 0..<table.count / Self.symbolBytes {
                let symbol = Self.symbol(number, in: table)
                let (end, overflow) = symbol.st_value.addingReportingOverflow(symbol.st_size)
                guard symbol.isNamedFunction, end > symbol.st_value, !overflow,
                    let name = Self.name(at: Int(symbol.st_name), in: names), isWanted(name)
                else { continue }
                functions.append(Function(name: name, addresses: symbol.st_value..<end))
            }
        }
        return functions
    }

    /// The symbol with that number of a piece of a symbol table.
    ///
    /// `number`: Less than the symbols that the piece has room for.
    static func symbol(_ number: Int, in table: [UInt8]) -> Elf64_Sym {
        table.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: number * symbolBytes, as: Elf64_Sym.self) }
    }
}

extension Elf64_Sym {
    /// Whether it stands for a function that the file itself has, and says its name.
    var isNamedFunction: Bool {
        let type = st_info & 0xf
        return (type == UInt8(STT_FUNC) || type == UInt8(STT_GNU_IFUNC)) && st_shndx != 0 && st_name != 0
    }
}
