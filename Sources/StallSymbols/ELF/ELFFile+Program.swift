package import StallReports
import Glibc

/// What a file says about how the kernel and the dynamic linker run it.
extension ELFFile {
    /// The most program headers; a file with more counts as damaged.
    ///
    /// Linkers write about a dozen.
    static let maximumProgramHeaders = 1_024
    /// The longest dynamic section in bytes: 64 Ki entries.
    static let maximumDynamicBytes = 1 << 20

    /// What decides whether the dynamic linker can load a library into a program.
    package struct Program: Equatable, Sendable {
        /// The machine that it is built for: one of the EM constants of elf.h.
        package var machine: UInt16
        /// The path of its dynamic linker; `nil` if it is linked statically.
        package var interpreter: String?
        /// Whether its Swift runtime is part of the executable.
        package var hasStaticSwift: Bool

        package init(machine: UInt16, interpreter: String?, hasStaticSwift: Bool) {
            self.machine = machine
            self.interpreter = interpreter
            self.hasStaticSwift = hasStaticSwift
        }
    }

    /// Reads what decides whether the dynamic linker can load a library into the program.
    ///
    /// - Throws: ``StallWatchError/Code/unreadableImage`` if the file is damaged or not a 64-bit little-endian ELF file.
    package func program() throws(StallWatchError) -> Program {
        let header = try header()
        var interpreter: String?
        if header.e_phnum > 0, Int(header.e_phentsize) == MemoryLayout<Elf64_Phdr>.size {
            let size = MemoryLayout<Elf64_Phdr>.size
            let table = try bytes(
                at: header.e_phoff, count: UInt64(header.e_phnum) * UInt64(size),
                atMost: Self.maximumProgramHeaders * size
            )
            for start in stride(from: 0, to: table.count, by: size) {
                // Inside the table: its size is a multiple of the size of a header.
                let raw = table.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start, as: Elf64_Phdr.self) }
                guard raw.p_type == UInt32(PT_INTERP) else { continue }
                let path = try bytes(at: raw.p_offset, count: raw.p_filesz, atMost: Int(PATH_MAX))
                interpreter = String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
            }
        }
        return Program(machine: header.e_machine, interpreter: interpreter, hasStaticSwift: try hasStaticSwift())
    }

    /// Whether the file has Swift code and needs no Swift runtime from elsewhere.
    ///
    /// Swift code has sections of metadata, which strip(1) keeps.
    private func hasStaticSwift() throws(StallWatchError) -> Bool {
        let sections = try namedSections()
        guard sections.keys.contains(where: { $0.hasPrefix("swift5_") }) else { return false }
        guard let dynamic = sections[".dynamic"], let names = sections[".dynstr"] else { return true }
        let entries = try bytes(of: dynamic, atMost: Self.maximumDynamicBytes)
        let strings = try bytes(of: names, atMost: Self.maximumSectionNamesBytes)
        let size = MemoryLayout<Elf64_Dyn>.size
        for start in stride(from: 0, to: entries.count - entries.count % size, by: size) {
            // Inside the section: whole entries only.
            let entry = entries.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start, as: Elf64_Dyn.self) }
            guard entry.d_tag == Int64(DT_NEEDED), let offset = Int(exactly: entry.d_un.d_val) else { continue }
            if Self.name(at: offset, in: strings) == "libswiftCore.so" { return false }
        }
        return true
    }
}
