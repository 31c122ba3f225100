import CCurl
import LinuxSupport

/// A gzip file (RFC 1952) whose contents are stored and not compressed (RFC 1951, 3.2.4).
///
/// profile.proto requires gzip for a profile on disk. Stored blocks need no compressor, and every gzip reader accepts them.
enum GzipFile {
    /// The maximum size of a stored block in bytes: its length field has 16 bits.
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

    /// Compressed contents; `nil` where the system has no zlib.
    ///
    /// The compressed data of a zlib stream (RFC 1950) without its head of two bytes and its checksum of four.
    static func compressed(_ contents: [UInt8]) -> [UInt8]? {
        // compressBound() of zlib.h.
        var length = contents.count + contents.count >> 12 + contents.count >> 14 + contents.count >> 25 + 64
        var stream = [UInt8](repeating: 0, count: length)
        guard ccurl_compress(contents, contents.count, &stream, &length), length >= 6 else { return nil }
        var checksum = CRC32()
        checksum.add(contents)
        return [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255] + stream[2..<(length - 4)] + littleEndian(checksum.value)
            + littleEndian(UInt32(truncatingIfNeeded: contents.count))
    }

    private static func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }
}
