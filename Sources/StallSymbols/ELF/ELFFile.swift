package import StallReports
import Glibc

/// Reads the sections of a 64-bit little-endian ELF file with pread(2), so that a file that shrinks meanwhile gives an
/// error and not a SIGBUS, as a mapping would.
package final class ELFFile {
    static let symbolTable = UInt32(SHT_SYMTAB)
    static let dynamicSymbolTable = UInt32(SHT_DYNSYM)
    static let symbolBytes = MemoryLayout<Elf64_Sym>.size
    /// The largest number of sections; a file with more counts as damaged.
    static let maximumSections = 65_536

    /// Open for as long as this object lives.
    package let descriptor: Int32
    package let path: String
    private var knownSections: [Section]?

    /// Opens the file.
    package init(path: String) throws(StallWatchError) {
        // Without O_NONBLOCK, a pipe in the place of the file would wait here for its writer (fifo(7)).
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw StallWatchError(.unreadableImage, "\(path) cannot be opened", errno: errno)
        }
        self.descriptor = descriptor
        self.path = path
    }

    /// Takes over an open descriptor.
    package init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        close(descriptor)
    }

    /// The section headers, as they were when they were first asked for.
    func sections() throws(StallWatchError) -> [Section] {
        if let knownSections { return knownSections }
        let sections = try readSections()
        knownSections = sections
        return sections
    }

    private func readSections() throws(StallWatchError) -> [Section] {
        let header = try header()
        guard header.e_shnum > 0, Int(header.e_shentsize) == MemoryLayout<Elf64_Shdr>.size else { return [] }
        let bytes = try bytes(
            at: header.e_shoff, count: UInt64(header.e_shnum) * UInt64(MemoryLayout<Elf64_Shdr>.size),
            atMost: Self.maximumSections * MemoryLayout<Elf64_Shdr>.size
        )
        return bytes.withUnsafeBytes { buffer in
            (0..<Int(header.e_shnum)).map { index in
                // Inside the buffer: it has e_shnum headers.
                let raw = buffer.loadUnaligned(
                    fromByteOffset: index * MemoryLayout<Elf64_Shdr>.size, as: Elf64_Shdr.self
                )
                return Section(
                    type: raw.sh_type, address: raw.sh_addr, offset: raw.sh_offset, size: raw.sh_size,
                    link: raw.sh_link,
                    name: raw.sh_name, flags: raw.sh_flags
                )
            }
        }
    }

    /// The file's header.
    func header() throws(StallWatchError) -> Elf64_Ehdr {
        let header = try load(Elf64_Ehdr.self, at: 0)
        let identity = header.e_ident
        guard identity.0 == 0x7f, identity.1 == 0x45, identity.2 == 0x4c, identity.3 == 0x46,
            identity.4 == UInt8(ELFCLASS64), identity.5 == UInt8(ELFDATA2LSB)
        else {
            throw StallWatchError(.unreadableImage, "\(path) is not a 64-bit little-endian ELF file")
        }
        return header
    }

    /// A section's place in the file.
    struct Section {
        var type: UInt32
        /// Its first virtual address; 0 for a section that is not mapped.
        var address: UInt64
        var offset: UInt64
        var size: UInt64
        var link: UInt32
        /// Offset in the table of section names.
        var name: UInt32 = 0
        var flags: UInt64 = 0
    }

    /// A section's contents.
    func bytes(of section: Section, atMost limit: Int) throws(StallWatchError) -> [UInt8] {
        try bytes(at: section.offset, count: section.size, atMost: limit)
    }

    /// The size of the file now.
    package func size() throws(StallWatchError) -> UInt64 {
        let end = lseek(descriptor, 0, SEEK_END)
        guard end >= 0 else {
            throw StallWatchError(.unreadableImage, "\(path) cannot be read", errno: errno)
        }
        return UInt64(end)
    }

    private func load<T: BitwiseCopyable>(_ type: T.Type, at offset: UInt64) throws(StallWatchError) -> T {
        let bytes = try bytes(at: offset, count: UInt64(MemoryLayout<T>.size), atMost: MemoryLayout<T>.size)
        return bytes.withUnsafeBytes { $0.loadUnaligned(as: type) }
    }

    /// `count` bytes from `offset` on.
    package func bytes(at offset: UInt64, count: UInt64, atMost limit: Int) throws(StallWatchError) -> [UInt8] {
        // Against the file's size first, so that a damaged count cannot ask for memory that no file could fill.
        let size = try size()
        guard count <= UInt64(limit), offset <= size, count <= size - offset else {
            throw StallWatchError(.unreadableImage, "\(path) is damaged: it points outside itself")
        }
        var done = 0
        let wanted = Int(count)
        let bytes = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, initialized in
            while done < wanted, let base = buffer.baseAddress {
                let got = pread(descriptor, base + done, wanted - done, off_t(offset) + off_t(done))
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { break }
                done += got
            }
            initialized = done
        }
        guard done == wanted else {
            throw StallWatchError(.unreadableImage, "\(path) could not be read to its end")
        }
        return bytes
    }
}
