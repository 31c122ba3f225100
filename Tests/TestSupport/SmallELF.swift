import Glibc

/// A builder of small 64-bit ELF files that contain only symbol tables and a code section (elf(5)).
package struct SmallELF {
    package struct Symbol {
        package var name: String
        package var address: UInt64
        package var size: UInt64 = 0x10
        package var type = UInt8(STT_FUNC)
        package var binding = UInt8(STB_GLOBAL)
        /// The index of the symbol's section; 0 for an undefined symbol.
        package var section: UInt16 = 1

        package init(
            name: String, address: UInt64, size: UInt64 = 0x10, type: UInt8 = UInt8(STT_FUNC),
            binding: UInt8 = UInt8(STB_GLOBAL), section: UInt16 = 1
        ) {
            self.name = name
            self.address = address
            self.size = size
            self.type = type
            self.binding = binding
            self.section = section
        }
    }

    /// The symbols of `.symtab`; `nil` for a file without one.
    package var symbols: [Symbol]?
    /// The symbols of `.dynsym`; `nil` for a file without one.
    package var dynamicSymbols: [Symbol]?
    /// The addresses of section 1, which contains the code.
    package var code: Range<UInt64> = 0x1000..<0x1_0000
    /// The bytes of that section; `nil` for none, as in a debug file.
    package var instructions: [UInt8]?
    /// A wrong section index of the string tables, for a damaged file; `nil` for the right ones.
    package var link: UInt32?
    /// A wrong number of sections in the file header, for a damaged file; `nil` for the right one.
    package var sectionCount: UInt16?

    package init(
        symbols: [Symbol]? = nil, dynamicSymbols: [Symbol]? = nil, code: Range<UInt64> = 0x1000..<0x1_0000,
        link: UInt32? = nil, sectionCount: UInt16? = nil
    ) {
        self.symbols = symbols
        self.dynamicSymbols = dynamicSymbols
        self.code = code
        self.link = link
        self.sectionCount = sectionCount
    }

    private struct Section {
        var type: Int32
        var bytes: [UInt8] = []
        var addresses: Range<UInt64> = 0..<0
        package var link: UInt32 = 0
        var entryBytes: UInt64 = 0
        var flags: UInt64 = 0
    }

    package var bytes: [UInt8] {
        let isCode = UInt64(SHF_EXECINSTR)
        var sections = [Section(type: SHT_NULL), Section(type: SHT_NOBITS, addresses: code, flags: isCode)]
        if let instructions {
            sections[1] = Section(
                type: SHT_PROGBITS, bytes: instructions, addresses: code.lowerBound..<code.lowerBound,
                flags: isCode)
        }
        for (type, table) in [(SHT_DYNSYM, dynamicSymbols), (SHT_SYMTAB, symbols)] {
            guard let table else { continue }
            var strings: [UInt8] = [0]
            var entries = [UInt8](repeating: 0, count: 24)
            for symbol in table {
                append(UInt32(strings.count), to: &entries)
                entries += [symbol.binding << 4 | symbol.type, 0]
                append(symbol.section, to: &entries)
                append(symbol.address, to: &entries)
                append(symbol.size, to: &entries)
                strings += Array(symbol.name.utf8) + [0]
            }
            sections.append(
                Section(type: type, bytes: entries, link: link ?? UInt32(sections.count + 1), entryBytes: 24)
            )
            sections.append(Section(type: SHT_STRTAB, bytes: strings))
        }

        var contents: [UInt8] = []
        var headers: [UInt8] = []
        for section in sections {
            append(UInt32(0), to: &headers)
            append(UInt32(section.type), to: &headers)
            append(section.flags, to: &headers)
            append(section.addresses.lowerBound, to: &headers)
            append(UInt64(64 + contents.count), to: &headers)
            append(UInt64(max(section.bytes.count, section.addresses.count)), to: &headers)
            append(section.link, to: &headers)
            append(UInt32(0), to: &headers)
            append(UInt64(8), to: &headers)
            append(section.entryBytes, to: &headers)
            contents += section.bytes
        }

        var file: [UInt8] = [0x7f, 0x45, 0x4c, 0x46, UInt8(ELFCLASS64), UInt8(ELFDATA2LSB), 1, 0]
        file += [UInt8](repeating: 0, count: 8)
        append(UInt16(ET_DYN), to: &file)
        append(UInt16(EM_X86_64), to: &file)
        append(UInt32(1), to: &file)
        append(UInt64(0), to: &file)
        append(UInt64(0), to: &file)
        append(UInt64(64 + contents.count), to: &file)
        append(UInt32(0), to: &file)
        for value in [64, 56, 0, 64, sectionCount ?? UInt16(sections.count), 0] as [UInt16] { append(value, to: &file) }
        return file + contents + headers
    }

    private func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }
}

/// How many rounds a test with random input runs: `count` in `make test`, and `STALLWATCH_TEST_ROUNDS` times as many elsewhere.
package func rounds(_ count: Int) -> Int {
    count * (getenv("STALLWATCH_TEST_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 1)
}

/// A random number generator with a seed, so that failures are reproducible (splitmix64: Steele, Lea and Flood 2014).
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
