import Glibc
import TestSupport
import Testing

@testable import StallSymbols

/// The lookup addresses (return address minus one) of direct calls in an executable.
enum CallSites {
    /// Returns all call sites, ascending: `E8` with an offset that leads to a function's first byte.
    static func all(in path: String) throws -> [UInt64] {
        let file = try ELFFile(path: path)
        let header = try file.header()
        let named = try file.namedSections()
        let text = try #require(named[".text"])
        let symbols = try file.bytes(of: #require(named[".symtab"]), atMost: 1 << 30)
        var functions: Set<UInt64> = []
        symbols.withUnsafeBytes { bytes in
            for offset in stride(from: 0, to: bytes.count - 23, by: 24) {
                let symbol = bytes.loadUnaligned(fromByteOffset: offset, as: Elf64_Sym.self)
                if symbol.st_info & 0xf == 2, symbol.st_shndx != 0 { functions.insert(symbol.st_value) }
            }
        }
        let address = try address(ofSectionAt: text.offset, header, file)
        let code = try file.bytes(of: text, atMost: 1 << 30)
        return code.withUnsafeBytes { bytes in
            var found: [UInt64] = []
            guard let base = bytes.baseAddress else { return found }
            var place = 0
            while place + 5 <= bytes.count, let hit = memchr(base + place, 0xe8, bytes.count - 4 - place) {
                place = base.distance(to: UnsafeRawPointer(hit))
                let offset = Int64(bytes.loadUnaligned(fromByteOffset: place + 1, as: Int32.self))
                let next = address + UInt64(place) + 5
                if functions.contains(next &+ UInt64(bitPattern: offset)) { found.append(next - 1) }
                place += 1
            }
            return found
        }
    }

    private static func address(ofSectionAt offset: UInt64, _ header: Elf64_Ehdr, _ file: ELFFile) throws -> UInt64 {
        for index in 0..<UInt64(header.e_shnum) {
            let bytes = try file.bytes(at: header.e_shoff + index * 64, count: 64, atMost: 64)
            let section = bytes.withUnsafeBytes { $0.loadUnaligned(as: Elf64_Shdr.self) }
            if section.sh_offset == offset, section.sh_type == 1 { return section.sh_addr }
        }
        throw Command.Failure(description: "no section begins at \(offset)")
    }
}
