package import StallReports
import Glibc

/// What a file says about itself and its debug information.
extension ELFFile {
    /// Longest name that a section may have.
    static let maximumSectionNameBytes = 64
    /// Bytes of names that a file's sections may have.
    static let maximumSectionNamesBytes = 8 << 20
    /// Bytes of notes that are looked through for the build ID.
    static let maximumNoteBytes = 64 << 10
    /// Longest build ID that is accepted, in bytes.
    ///
    /// SHA-1, the linkers' default, has 20.
    static let maximumBuildIDBytes = 64

    /// The sections whose names are known, by name; of several with one name, the first.
    func namedSections() throws(StallWatchError) -> [String: Section] {
        let sections = try sections()
        let index = Int(try header().e_shstrndx)
        guard sections.indices.contains(index) else { return [:] }
        let names = try bytes(of: sections[index], atMost: Self.maximumSectionNamesBytes)
        var named = [String: Section](minimumCapacity: sections.count)
        for section in sections where section.type != UInt32(SHT_NULL) && section.type != UInt32(SHT_NOBITS) {
            guard let name = Self.name(at: Int(section.name), in: names) else { continue }
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
        for section in try sections() where section.type == UInt32(SHT_NOTE) {
            let notes = try bytes(of: section, atMost: Self.maximumNoteBytes)
            if let identifier = Self.buildID(inNotes: notes) { return identifier }
        }
        return nil
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
