import Glibc
package import StallReports

extension ELFFile {
    struct SymbolSections {
        let symbols: Elf64_Shdr
        let names: Elf64_Shdr
        /// Whether this is `.symtab`: `.dynsym` lacks the functions that are not exported.
        let isComplete: Bool
    }

    /// A function, with the virtual addresses that it has in the file.
    package struct Function {
        package let name: String
        package let addresses: Range<UInt64>
    }

    /// Bytes of names that ``functions(where:)`` reads: a file with more is refused; those of libc are 32 kB.
    static let maximumFunctionNamesBytes = 8 << 20

    /// `.symtab` if the file has one, else `.dynsym`; `nil` if it has neither.
    func symbolSections() throws(StallWatchError) -> SymbolSections? {
        let sections = try sections()
        let complete = sections.first { $0.sh_type == UInt32(SHT_SYMTAB) }
        guard let symbols = complete ?? sections.first(where: { $0.sh_type == Self.dynamicSymbolTable }) else {
            return nil
        }
        guard sections.indices.contains(Int(symbols.sh_link)) else {
            throw StallWatchError(.unreadableImage, "\(path) is damaged: its symbol table names no string table")
        }
        return SymbolSections(symbols: symbols, names: sections[Int(symbols.sh_link)], isComplete: complete != nil)
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
        return try functions(in: found.symbols) {
            Self.name(at: Int($0), in: names).flatMap { isWanted($0) ? $0 : nil }
        }
    }

    /// The symbol with that number of a piece of a symbol table, which must have room for so many.
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

    /// Whether it stands for a place that the file itself has and says the name of, and that other files may use.
    var isNamedLabel: Bool {
        st_info & 0xf == UInt8(STT_NOTYPE) && st_info >> 4 != UInt8(STB_LOCAL) && st_shndx != 0 && st_name != 0
    }
}

extension ELFFile {
    /// Bytes of names read at a time, and of the longest name found: less than malloc(3) maps, because freeing 1 MiB
    /// once made glibc keep 2 MB for the next.
    static let nameScanBytes = 64 << 10
    /// Functions that a scan finds at most: the others of a file with more are left out.
    static let maximumScannedFunctions = 65_536

    private struct WantedName {
        let place: Range<UInt64>
        let name: String
    }

    /// Returns the functions whose names match, unordered.
    ///
    /// Reads the tables in chunks: memory grows with the matches only. Reads all names once and all symbols once, a piece at a time. In a static executable of 128 MB with 6 MB of symbols
    /// and 16 MB of names, one name takes 12 ms and all functions of libraries that wait take 22 ms, in a release build
    /// with the file in the page cache; 130 ms with the file on disk. A linker may let a symbol's name be the end of
    /// another's: it is found if the longer one is wanted, too.
    package func scanFunctions(
        where isWanted: (UnsafeRawBufferPointer) -> Bool
    ) throws(StallWatchError) -> [Function] {
        guard let found = try symbolSections() else { return [] }
        let wanted = try wantedNames(in: found.names, isWanted)
        return try functions(in: found.symbols) { Self.name(at: UInt64($0), among: wanted, isWanted) }
    }

    /// The functions for which `name` returns one, by the place of the symbol's name.
    private func functions(
        in symbols: Elf64_Shdr, named name: (UInt32) -> String?
    ) throws(StallWatchError) -> [Function] {
        // About a page.
        let piece = UInt64(170 * Self.symbolBytes)
        var functions: [Function] = []
        var start: UInt64 = 0
        while start < symbols.sh_size, functions.count < Self.maximumScannedFunctions {
            for symbol in Self.records(of: Elf64_Sym.self, in: try readPiece(of: symbols, from: start, count: piece)) {
                let (end, overflow) = symbol.st_value.addingReportingOverflow(symbol.st_size)
                guard symbol.isNamedFunction, end > symbol.st_value, !overflow, let name = name(symbol.st_name) else {
                    continue
                }
                functions.append(Function(name: name, addresses: symbol.st_value..<end))
            }
            start += piece
        }
        return functions
    }

    private func readPiece(
        of section: Elf64_Shdr, from start: UInt64, count: UInt64
    ) throws(StallWatchError) -> [UInt8] {
        let (offset, overflow) = section.sh_offset.addingReportingOverflow(start)
        // An offset past any file's end is refused as such.
        return try bytes(
            at: overflow ? .max : offset, count: min(count, section.sh_size - start), atMost: Int(clamping: count)
        )
    }

    /// The wanted names, in ascending order of their places.
    private func wantedNames(
        in names: Elf64_Shdr, _ isWanted: (UnsafeRawBufferPointer) -> Bool
    ) throws(StallWatchError) -> [WantedName] {
        var wanted: [WantedName] = []
        var start: UInt64 = 0
        while start < names.sh_size, wanted.count < Self.maximumScannedFunctions {
            let piece = try readPiece(of: names, from: start, count: UInt64(Self.nameScanBytes))
            let read = piece.withUnsafeBytes { bytes in
                var place = 0
                while let end = bytes.firstZero(from: place) {
                    // Inside: `end` is the index of a byte that is not before `place`.
                    let name = UnsafeRawBufferPointer(rebasing: bytes[place..<end])
                    if !name.isEmpty, isWanted(name) {
                        let first = start + UInt64(place)
                        wanted.append(
                            WantedName(
                                place: first..<first + UInt64(name.count), name: String(decoding: name, as: UTF8.self)
                            )
                        )
                    }
                    place = end + 1
                }
                return place
            }
            // A piece without an end of a name is the inside of one that is longer than any function's.
            start += UInt64(read == 0 ? piece.count : read)
        }
        return wanted
    }

    private static func name(
        at place: UInt64, among wanted: [WantedName], _ isWanted: (UnsafeRawBufferPointer) -> Bool
    ) -> String? {
        let begun = wanted.prefixCount { $0.place.lowerBound <= place }
        guard begun > 0, wanted[begun - 1].place.contains(place) else { return nil }
        let found = wanted[begun - 1]
        guard place > found.place.lowerBound else { return found.name }
        let end = Array(found.name.utf8.dropFirst(Int(place - found.place.lowerBound)))
        return end.withUnsafeBytes(isWanted) ? String(decoding: end, as: UTF8.self) : nil
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func firstZero(from start: Int) -> Int? {
        guard start < count, let baseAddress, let zero = memchr(baseAddress + start, 0, count - start) else {
            return nil
        }
        return UnsafeRawPointer(zero) - baseAddress
    }
}
