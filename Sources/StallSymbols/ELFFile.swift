import Glibc
import LinuxSupport
package import StallReports

/// Reads the sections of a 64-bit little-endian ELF file with pread(2), so that a file that shrinks meanwhile gives an
/// error and not a SIGBUS, as a mapping would.
package final class ELFFile {
    static let dynamicSymbolTable = UInt32(SHT_DYNSYM)
    static let symbolBytes = MemoryLayout<Elf64_Sym>.size
    /// The largest number of sections; a file with more counts as damaged.
    static let maximumSections = 65_536

    /// The most bytes that are read without asking whether there is memory for them.
    private static let unaskedBytes = 64 << 10

    private let kept: KeptDescriptor
    /// Open for as long as this object lives, unless the app closes it.
    package var descriptor: Int32 { kept.number }
    package let path: String
    private var knownSections: [Elf64_Shdr]?

    /// Opens a regular file: a report may name any path, and opening a device can have effects.
    package init(path: String) throws(StallWatchError) {
        guard FileStatus(path: path)?.isRegular != false else {
            throw StallWatchError(.unreadableImage, "\(path) is not a regular file")
        }
        // Without O_NONBLOCK, a pipe in the place of the file would wait here for its writer (fifo(7)).
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw StallWatchError(.unreadableImage, "\(path) cannot be opened", errno: errno)
        }
        kept = KeptDescriptor(descriptor)
        self.path = path
    }

    /// Takes over an open descriptor.
    package init(descriptor: Int32, path: String) {
        kept = KeptDescriptor(descriptor)
        self.path = path
    }

    deinit { kept.close() }

    /// The section headers, as they were when they were first asked for.
    func sections() throws(StallWatchError) -> [Elf64_Shdr] {
        if let knownSections { return knownSections }
        let header = try header()
        let sections = try table(
            of: Elf64_Shdr.self, at: header.e_shoff, count: header.e_shnum, recordBytes: header.e_shentsize,
            atMost: Self.maximumSections)
        knownSections = sections
        return sections
    }

    /// The records of a table that the file's header names; none if they have another size than those of elf.h.
    private func table<Record>(
        of type: Record.Type, at offset: UInt64, count: UInt16, recordBytes: UInt16, atMost limit: Int
    ) throws(StallWatchError) -> [Record] {
        let size = MemoryLayout<Record>.size
        guard count > 0, Int(recordBytes) == size else { return [] }
        let contents = try bytes(at: offset, count: UInt64(count) * UInt64(size), atMost: limit * size)
        return Array(Self.records(of: type, in: contents))
    }

    static func records<Record>(
        of type: Record.Type, in table: [UInt8]
    ) -> LazyMapSequence<Range<Int>, Record> {
        (0..<table.count / MemoryLayout<Record>.size).lazy.map { number in
            // Inside the table, which has room for so many.
            table.withUnsafeBytes {
                $0.loadUnaligned(fromByteOffset: number * MemoryLayout<Record>.size, as: Record.self)
            }
        }
    }

    func header() throws(StallWatchError) -> Elf64_Ehdr {
        let size = MemoryLayout<Elf64_Ehdr>.size
        let start = try bytes(at: 0, count: UInt64(size), atMost: size)
        let header = start.withUnsafeBytes { $0.loadUnaligned(as: Elf64_Ehdr.self) }
        let identity = header.e_ident
        guard identity.0 == 0x7f, identity.1 == 0x45, identity.2 == 0x4c, identity.3 == 0x46,
            identity.4 == UInt8(ELFCLASS64), identity.5 == UInt8(ELFDATA2LSB)
        else {
            throw StallWatchError(.unreadableImage, "\(path) is not a 64-bit little-endian ELF file")
        }
        return header
    }

    func bytes(of section: Elf64_Shdr, atMost limit: Int) throws(StallWatchError) -> [UInt8] {
        try bytes(at: section.sh_offset, count: section.sh_size, atMost: limit)
    }

    package func size() throws(StallWatchError) -> UInt64 {
        // Not by lseek(2): it would move the program's place in a file that has the number by now.
        guard let status = FileStatus(descriptor: kept.usable) else {
            throw StallWatchError(.unreadableImage, "\(path) cannot be read", errno: errno)
        }
        return UInt64(status.size)
    }

    package func bytes(at offset: UInt64, count: UInt64, atMost limit: Int) throws(StallWatchError) -> [UInt8] {
        // Against the file's size first, so that a damaged count cannot ask for memory that no file could fill.
        let size = try size()
        guard count <= UInt64(limit), offset <= size, count <= size - offset else {
            throw StallWatchError(.unreadableImage, "\(path) is damaged: it points outside itself")
        }
        // What is read is kept and indexed.
        guard count <= Self.unaskedBytes || hasMemory(for: 4 * Int(count)) else {
            throw StallWatchError(.unreadableImage, "\(path) is not read: memory is short", errno: ENOMEM)
        }
        guard let bytes = AtomicFile.read(descriptor, from: Int(offset), count: Int(count)), bytes.count == count else {
            throw StallWatchError(.unreadableImage, "\(path) could not be read to its end")
        }
        return bytes
    }
}

extension ELFFile {
    static let maximumSectionNameBytes = 64
    static let maximumSectionNamesBytes = 8 << 20
    /// Bytes of notes that are looked through for the build ID.
    static let maximumNoteBytes = 64 << 10
    /// SHA-1, the linkers' default, has 20.
    static let maximumBuildIDBytes = 64

    /// The sections whose names are known, by name; of several with one name, the first.
    func namedSections() throws(StallWatchError) -> [String: Elf64_Shdr] {
        let sections = try sections()
        let index = Int(try header().e_shstrndx)
        guard sections.indices.contains(index) else { return [:] }
        let names = try bytes(of: sections[index], atMost: Self.maximumSectionNamesBytes)
        var named = [String: Elf64_Shdr](minimumCapacity: sections.count)
        for section in sections where section.sh_type != UInt32(SHT_NULL) && section.sh_type != UInt32(SHT_NOBITS) {
            guard let name = Self.name(at: Int(section.sh_name), in: names) else { continue }
            if named[name] == nil { named[name] = section }
        }
        return named
    }

    /// The name that begins there; of a longer one than a section may have, the beginning.
    package static func name(at start: Int, in names: [UInt8]) -> String? {
        guard start < names.count else { return nil }
        return names.withUnsafeBytes { bytes in
            let longest = UnsafeRawBufferPointer(rebasing: bytes[start...].prefix(maximumSectionNameBytes))
            // Not empty, because `start` is inside, and read no further than its end.
            let length = longest.baseAddress.map { strnlen($0, longest.count) } ?? 0
            return String(decoding: longest.prefix(length), as: UTF8.self)
        }
    }

    /// The build ID in lower-case hexadecimal, or `nil` if the file has none.
    package func buildID() throws(StallWatchError) -> String? {
        for section in try sections() where section.sh_type == UInt32(SHT_NOTE) {
            let notes = try bytes(of: section, atMost: Self.maximumNoteBytes)
            if let identifier = Self.buildID(inNotes: notes) { return identifier }
        }
        // A file may have lost its table of sections (strip --strip-section-headers), but not that of its segments.
        guard try sections().isEmpty else { return nil }
        for segment in try segments() where segment.p_type == UInt32(PT_NOTE) {
            let notes = try bytes(at: segment.p_offset, count: segment.p_filesz, atMost: Self.maximumNoteBytes)
            if let identifier = Self.buildID(inNotes: notes) { return identifier }
        }
        return nil
    }

    private func segments() throws(StallWatchError) -> [Elf64_Phdr] {
        let header = try header()
        return try table(
            of: Elf64_Phdr.self, at: header.e_phoff, count: header.e_phnum, recordBytes: header.e_phentsize,
            atMost: Self.maximumProgramHeaders)
    }

    /// The hash of what is the same in memory, as 16 hexadecimal digits; `nil` if the file is damaged.
    ///
    /// CUnwind computes the same from memory: FNV-1a, word by word, of the first 16 KiB of four segments that are not
    /// writable, without the ELF header, which strip(1) changes.
    package func contentHash() -> String? {
        guard let segments = try? segments() else { return nil }
        var (hash, read): (UInt64, Int) = (0xcbf2_9ce4_8422_2325, 0)
        for segment in segments where segment.p_type == UInt32(PT_LOAD) && segment.p_flags & UInt32(PF_W) == 0 {
            let skipped = segment.p_offset == 0 ? UInt64(MemoryLayout<Elf64_Ehdr>.size) : 0
            guard segment.p_filesz > skipped, read < 4 else { continue }
            let count = (min(segment.p_filesz, 16 << 10) - skipped) & ~7
            guard let bytes = try? bytes(at: segment.p_offset + skipped, count: count, atMost: 16 << 10) else {
                return nil
            }
            for word in Self.records(of: UInt64.self, in: bytes) { hash = (hash ^ word) &* 0x100_0000_01b3 }
            read += 1
        }
        return hexadecimal(hash, width: 16)
    }

    /// The file name in `.gnu_debuglink`, and the CRC-32 of the file that is meant.
    func debugLink() throws(StallWatchError) -> (name: String, checksum: UInt32)? {
        guard let section = try namedSections()[".gnu_debuglink"] else { return nil }
        let bytes = try bytes(of: section, atMost: Int(PATH_MAX) + 8)
        let name = bytes.prefix { $0 != 0 }
        // The checksum is the section's last word, aligned to four bytes.
        let place = (name.count + 4) & ~3
        guard !name.isEmpty, !name.contains(UInt8(ascii: "/")), place + 4 <= bytes.count else { return nil }
        return (String(decoding: name, as: UTF8.self), Self.word(in: bytes, at: place))
    }

    /// Walks an array of notes (elf(5)): name size, description size, type, then name and description, padded to words.
    private static func buildID(inNotes notes: [UInt8]) -> String? {
        var place = 0
        while place + 12 <= notes.count {
            let nameBytes = Int(word(in: notes, at: place))
            let descriptionBytes = Int(word(in: notes, at: place + 4))
            let name = place + 12
            guard nameBytes <= notes.count - name else { return nil }
            let description = name + ((nameBytes + 3) & ~3)
            guard description <= notes.count, descriptionBytes <= notes.count - description else { return nil }
            if word(in: notes, at: place + 8) == UInt32(NT_GNU_BUILD_ID),
                notes[name..<name + nameBytes].elementsEqual(gnu),
                (1...maximumBuildIDBytes).contains(descriptionBytes)
            {
                return hexadecimal(notes[description..<description + descriptionBytes])
            }
            place = description + ((descriptionBytes + 3) & ~3)
        }
        return nil
    }

    private static let gnu = Array("GNU\0".utf8)

    /// The word at `place`, which must be inside.
    private static func word(in bytes: [UInt8], at place: Int) -> UInt32 {
        bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place, as: UInt32.self) }
    }
}

extension ELFFile {
    /// Linkers write about a dozen; a file with more counts as damaged.
    static let maximumProgramHeaders = 1_024
    /// The longest dynamic section in bytes: 64 Ki entries.
    static let maximumDynamicBytes = 1 << 20

    /// What decides whether the dynamic linker can load a library into a program.
    package struct Program: Equatable, Sendable {
        package var machine: UInt16
        /// The path of its dynamic linker; `nil` if it is linked statically.
        package var interpreter: String?
        package var hasStaticSwift: Bool
    }

    /// Throws ``StallWatchError/Code/unreadableImage`` if the file is damaged or not a 64-bit little-endian ELF file.
    package func program() throws(StallWatchError) -> Program {
        let header = try header()
        var interpreter: String?
        for segment in try segments() where segment.p_type == UInt32(PT_INTERP) {
            let path = try bytes(at: segment.p_offset, count: segment.p_filesz, atMost: Int(PATH_MAX))
            interpreter = String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
        }
        return Program(machine: header.e_machine, interpreter: interpreter, hasStaticSwift: try hasStaticSwift())
    }

    /// Whether the file has Swift code (in sections of metadata, which strip(1) keeps) with its own runtime.
    private func hasStaticSwift() throws(StallWatchError) -> Bool {
        let sections = try namedSections()
        guard sections.keys.contains(where: { $0.hasPrefix("swift5_") }) else { return false }
        guard let dynamic = sections[".dynamic"], let names = sections[".dynstr"] else { return true }
        let entries = try bytes(of: dynamic, atMost: Self.maximumDynamicBytes)
        let strings = try bytes(of: names, atMost: Self.maximumSectionNamesBytes)
        for entry in Self.records(of: Elf64_Dyn.self, in: entries) {
            guard entry.d_tag == Int64(DT_NEEDED), let offset = Int(exactly: entry.d_un.d_val) else { continue }
            if Self.name(at: offset, in: strings) == "libswiftCore.so" { return false }
        }
        return true
    }
}
