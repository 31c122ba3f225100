import LinuxSupport

/// A gzip file (RFC 1952) whose contents are stored and not compressed (RFC 1951, 3.2.4).
///
/// profile.proto says that a profile on disk is in one. Stored blocks need no compressor, and every gzip reader takes them.
enum GzipFile {
    /// The most that a stored block can hold: its length has 16 bits.
    private static let blockSize = 0xffff

    static func data(_ contents: [UInt8]) -> [UInt8] {
        // Magic, method "deflate", no flags, no time, no extra flags, operating system unknown: the same each time.
        var file: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
        file.reserveCapacity(contents.count + contents.count / blockSize * 5 + 32)
        var begin = 0
        repeat {
            let end = min(begin + blockSize, contents.count)
            file.append(end == contents.count ? 1 : 0)
            let length = UInt16(end - begin)
            file += littleEndian(length)
            file += littleEndian(~length)
            file += contents[begin..<end]
            begin = end
        } while begin < contents.count
        var checksum = CRC32()
        checksum.add(contents)
        file += littleEndian(checksum.value)
        file += littleEndian(UInt32(truncatingIfNeeded: contents.count))
        return file
    }

    private static func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }
}
