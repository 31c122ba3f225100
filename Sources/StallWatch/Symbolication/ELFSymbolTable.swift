import Glibc

/// The function symbols of an ELF file (elf(5)): `.symtab` if the file has one, else `.dynsym`.
///
/// `.symtab` also names functions that are not exported, which dladdr(3) cannot see. A file that is truncated, damaged or
/// not ELF gives an error or fewer symbols, never a crash: every offset is checked before it is used.
struct ELFSymbolTable {
    /// A function.
    struct Symbol: Equatable {
        /// The mangled name.
        var name: String
        /// The virtual address in the file.
        var address: UInt64
    }

    private struct Entry {
        var address: UInt64
        var size: UInt64
        var name: UInt32
        /// Global before weak before local, where several names share an address.
        var rank: UInt8
    }

    private let entries: [Entry]
    private let strings: [UInt8]

    /// Symbols that one file may have; a larger table is read up to here.
    static let maximumSymbols = 4_000_000
    /// Bytes of names that one file may have. A file with more is refused.
    static let maximumStringBytes = 512 << 20

    /// Reads the symbols of the file at `path`.
    init(path: String) throws(StallWatchError) {
        let file = try ELFFile(path: path)
        let sections = try file.sections()
        guard let symbols = sections.first(where: { $0.type == ELFFile.symbolTable })
            ?? sections.first(where: { $0.type == ELFFile.dynamicSymbolTable })
        else {
            entries = []
            strings = []
            return
        }
        guard sections.indices.contains(Int(symbols.link)) else {
            throw StallWatchError(.unreadableImage, "\(path) is damaged: its symbol table names no string table")
        }
        strings = try file.bytes(of: sections[Int(symbols.link)], atMost: Self.maximumStringBytes)
        let table = try file.bytes(of: symbols, atMost: Self.maximumSymbols * ELFFile.symbolBytes)
        entries = Self.functions(in: table, of: sections)
    }

    /// The function that the file's virtual address `address` lies in.
    func symbol(at address: UInt64) -> Symbol? {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].address <= address { low = middle + 1 } else { high = middle }
        }
        guard low > 0 else { return nil }
        let entry = entries[low - 1]
        guard address - entry.address < entry.size else { return nil }
        let start = Int(entry.name)
        guard start < strings.count, let end = strings[start...].firstIndex(of: 0), end > start else { return nil }
        return Symbol(name: String(decoding: strings[start..<end], as: UTF8.self), address: entry.address)
    }

    /// How far a function reaches, unless another one begins before.
    ///
    /// Assembly may leave the size out: then to the end of its section.
    private static func size(of symbol: Elf64_Sym, in sections: [ELFFile.Section]) -> UInt64 {
        guard symbol.st_size == 0 else { return symbol.st_size }
        guard sections.indices.contains(Int(symbol.st_shndx)) else { return 0 }
        let section = sections[Int(symbol.st_shndx)]
        // Of a symbol that lies before its section, which only damage brings about, this wraps round to a large number.
        let offset = symbol.st_value &- section.address
        return offset < section.size ? section.size - offset : 0
    }

    private static func functions(in table: [UInt8], of sections: [ELFFile.Section]) -> [Entry] {
        var entries: [Entry] = []
        table.withUnsafeBytes { bytes in
            for index in 0..<(bytes.count / ELFFile.symbolBytes) {
                // Inside the buffer: index × size + size is at most its count.
                let symbol = bytes.loadUnaligned(fromByteOffset: index * ELFFile.symbolBytes, as: Elf64_Sym.self)
                let type = symbol.st_info & 0xf
                guard type == UInt8(STT_FUNC) || type == UInt8(STT_GNU_IFUNC), symbol.st_shndx != 0, symbol.st_name != 0
                else { continue }
                let rank: UInt8
                switch symbol.st_info >> 4 {
                case UInt8(STB_GLOBAL): rank = 0
                case UInt8(STB_WEAK): rank = 1
                default: rank = 2
                }
                entries.append(
                    Entry(
                        address: symbol.st_value, size: size(of: symbol, in: sections), name: symbol.st_name, rank: rank
                    )
                )
            }
        }
        entries.sort { ($0.address, $0.rank) < ($1.address, $1.rank) }
        var previous: UInt64?
        entries.removeAll { entry in
            defer { previous = entry.address }
            return entry.address == previous
        }
        return entries
    }
}
