import Glibc
import StallReports

/// The function symbols of an ELF file (elf(5)): `.symtab` if the file has one, else `.dynsym`.
///
/// `.symtab` also names functions that are not exported, which dladdr(3) cannot see. A file that is truncated, damaged or
/// not ELF gives an error or fewer symbols, never a crash: every offset is checked before it is used.
struct ELFSymbolTable {
    struct Symbol: Equatable {
        var name: String
        var address: UInt64
    }

    /// A file with more symbols is refused.
    static let maximumSymbols = 4_000_000
    /// Longest name that is read; of a longer one, the beginning.
    static let maximumNameBytes = 1 << 20

    let isComplete: Bool

    private let file: ELFFile
    private let sections: [Elf64_Shdr]
    /// Where the names are: they are read one by one, because of a hundred thousand a stack needs ten.
    private let names: Elf64_Shdr?
    private let table: [UInt8]
    private let index: AddressIndex

    /// Reads the symbols of an open file, and keeps it open.
    init(file: ELFFile) throws(StallWatchError) {
        self.file = file
        sections = try file.sections()
        let found = try file.symbolSections()
        isComplete = found?.isComplete ?? false
        names = found?.names
        table =
            try found.map { found throws(StallWatchError) in
                try file.bytes(of: found.symbols, atMost: Self.maximumSymbols * ELFFile.symbolBytes)
            } ?? []
        index = AddressIndex(addresses: Self.functionAddresses(in: table, sections))
    }

    var memoryBytes: Int { table.count + index.memoryBytes }

    /// The function that the file's virtual address `address` lies in.
    func symbol(at address: UInt64) -> Symbol? {
        // Of several names for one address: global before weak before local, then the first.
        let candidates = index.lastBegun(before: address)
        guard let best = candidates.min(by: { (rank(of: $0), $0) < (rank(of: $1), $1) }) else { return nil }
        let symbol = ELFFile.symbol(Int(best), in: table)
        guard address - symbol.st_value < size(of: symbol), let name = name(at: UInt64(symbol.st_name)) else {
            return nil
        }
        return Symbol(name: name, address: symbol.st_value)
    }

    /// Returns the function that starts at `address`.
    ///
    /// - Returns: `nil` if no function starts there, if it has no size, if it only chooses a function (STT_GNU_IFUNC), or if
    ///   the linker has folded functions with different names there.
    func function(startingAt address: UInt64) -> CalledFunction? {
        guard let symbol = symbol(at: address), symbol.address == address else { return nil }
        let all = index.lastBegun(before: address).map { ELFFile.symbol(Int($0), in: table) }
        let names = all.compactMap { name(at: UInt64($0.st_name)) }
        // C++ has several symbols for one constructor.
        let distinct = Set(names.map { $0.hasPrefix("$s") ? $0 : Demangler.functionName($0) })
        let (end, overflow) = address.addingReportingOverflow(all.map(\.st_size).max() ?? 0)
        guard all.allSatisfy({ $0.st_info & 0xf == UInt8(STT_FUNC) }), distinct.count == 1, end > address, !overflow
        else { return nil }
        return CalledFunction(symbol: symbol.name, addresses: address..<end)
    }

    /// Returns the functions before and after `address`, up to `count` of each.
    func functions(near address: UInt64, count: Int) -> [Symbol] {
        index.near(address, count: count).compactMap { number in
            let symbol = ELFFile.symbol(Int(number), in: table)
            return name(at: UInt64(symbol.st_name)).map { Symbol(name: $0, address: symbol.st_value) }
        }
    }

    /// Returns whether a nameless address lies between two functions of the system's or the toolchain's libraries.
    ///
    /// Then its function is of such a library, too, because a linker keeps the functions of one object file together:
    /// functions that the compiler has merged have no symbol. Needs `.symtab`: `.dynsym` lacks what is not exported.
    func isAmongLibraries(_ address: UInt64) -> Bool {
        guard isComplete, let before = index.lastBegun(before: address).first,
            let after = index.firstBegun(after: address)
        else { return false }
        return [before, after].allSatisfy { number in
            name(at: UInt64(ELFFile.symbol(Int(number), in: table).st_name)).map(RuntimeLibrary.contains) ?? false
        }
    }

    /// How far a function reaches, unless another one begins before.
    ///
    /// Assembly may leave the size out: then to the end of its section. In `.dynsym` the next function may be a local
    /// one, so the address alone counts: the package manager gives `main` no size, and most code comes after it.
    private func size(of symbol: Elf64_Sym) -> UInt64 {
        guard symbol.st_size == 0 else { return symbol.st_size }
        guard isComplete else { return 1 }
        guard sections.indices.contains(Int(symbol.st_shndx)) else { return 0 }
        let section = sections[Int(symbol.st_shndx)]
        // Of a symbol that lies before its section, which only damage brings about, this wraps round to a large number.
        let offset = symbol.st_value &- section.sh_addr
        return offset < section.sh_size ? section.sh_size - offset : 0
    }

    private func rank(of number: UInt32) -> Int {
        switch ELFFile.symbol(Int(number), in: table).st_info >> 4 {
        case UInt8(STB_GLOBAL): 0
        case UInt8(STB_WEAK): 1
        default: 2
        }
    }

    private func name(at offset: UInt64) -> String? {
        var length = UInt64(256)
        while true {
            guard let names, offset < names.sh_size else { return nil }
            let count = min(length, names.sh_size - offset, UInt64(Self.maximumNameBytes))
            let (start, overflow) = names.sh_offset.addingReportingOverflow(offset)
            guard !overflow, let bytes = try? file.bytes(at: start, count: count, atMost: Self.maximumNameBytes)
            else { return nil }
            if let end = bytes.firstIndex(of: 0) {
                return end == 0 ? nil : String(decoding: bytes[..<end], as: UTF8.self)
            }
            // A name that never ends is damaged; one that is only too long is cut short.
            guard count < names.sh_size - offset else { return nil }
            if count == UInt64(Self.maximumNameBytes) { return String(decoding: bytes, as: UTF8.self) }
            length *= 8
        }
    }

    /// The addresses of the defined functions, each with its symbol's number.
    ///
    /// Assembly may leave the type out, too: then a global symbol in code is a function, unless another one contains it.
    private static func functionAddresses(in table: [UInt8], _ sections: [Elf64_Shdr]) -> [AddressIndex.Entry] {
        var (functions, labels): ([AddressIndex.Entry], [AddressIndex.Entry]) = ([], [])
        functions.reserveCapacity(table.count / ELFFile.symbolBytes)
        for (number, symbol) in ELFFile.records(of: Elf64_Sym.self, in: table).enumerated() {
            let entry = AddressIndex.Entry(address: symbol.st_value, number: UInt32(number))
            if symbol.isNamedFunction { functions.append(entry) }
            if symbol.isNamedLabel, sections.indices.contains(Int(symbol.st_shndx)),
                sections[Int(symbol.st_shndx)].sh_flags & UInt64(SHF_EXECINSTR) != 0
            {
                labels.append(entry)
            }
        }
        guard !labels.isEmpty else { return functions }
        let known = AddressIndex(addresses: functions)
        return functions
            + labels.filter { label in
                !known.lastBegun(before: label.address).contains { number in
                    let function = ELFFile.symbol(Int(number), in: table)
                    return label.address - function.st_value < function.st_size
                }
            }
    }
}

/// The addresses of symbols, in ascending order.
struct AddressIndex {
    struct Entry {
        var address: UInt64
        var number: UInt32
    }

    private let entries: [Entry]

    init(addresses: [Entry]) {
        entries = addresses.sorted { ($0.address, $0.number) < ($1.address, $1.number) }
    }

    var memoryBytes: Int { entries.count * MemoryLayout<Entry>.stride }

    /// Returns the numbers of the entries at the highest address that is not past `address`.
    func lastBegun(before address: UInt64) -> [UInt32] {
        let end = entries.prefixCount { $0.address <= address }
        guard end > 0 else { return [] }
        return entries[..<end].reversed().prefix { $0.address == entries[end - 1].address }.map(\.number).reversed()
    }

    /// Returns the number of an entry at the lowest address past `address`; `nil` if there is none.
    func firstBegun(after address: UInt64) -> UInt32? {
        let index = entries.prefixCount { $0.address <= address }
        return index < entries.count ? entries[index].number : nil
    }

    /// Returns the numbers of up to `count` entries that are not past `address`, and of as many after it.
    func near(_ address: UInt64, count: Int) -> [UInt32] {
        let middle = entries.prefixCount { $0.address <= address }
        return entries[max(0, middle - count)..<min(entries.count, middle + count)].map(\.number)
    }
}

extension Array {
    /// The number of elements for which `isIncluded` is true, by binary search: they come before all others.
    package func prefixCount(where isIncluded: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = low + (high - low) / 2
            if isIncluded(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
