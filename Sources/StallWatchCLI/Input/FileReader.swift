import StallReports
import LinuxSupport
import Glibc

/// Reads a file in pieces.
final class FileReader {
    private let descriptor: Int32
    private let path: String

    /// Opens the file at `path`; `-` is standard input.
    init(path: String) throws(CommandFailure) {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CommandFailure(reading: path, errno: errno) }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

    /// The next bytes, `count` at most; none at the end.
    func read(_ count: Int) throws(CommandFailure) -> [UInt8] {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            var got = 0
            repeat { got = Glibc.read(descriptor, buffer.baseAddress, count) } while got < 0 && errno == EINTR
            if got < 0 { failure = errno }
            filled = max(got, 0)
        }
        guard failure == 0 else {
            throw CommandFailure(reading: path == "-" ? "standard input" : path, errno: failure)
        }
        return bytes
    }

    /// A whole file.
    ///
    /// - Throws: Why it cannot be read, in words.
    static func contents(of path: String, limit: Int = StallReport.maximumBytes) throws(UnreadableReport) -> [UInt8] {
        // Without O_NONBLOCK, a FIFO in the file's place would block.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw UnreadableReport("it cannot be read: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        guard let status = FileStatus(descriptor: descriptor), status.isRegular else {
            throw UnreadableReport("it is not a regular file")
        }
        guard status.size <= limit else {
            throw UnreadableReport("it has \(status.size) bytes, and the limit is \(limit)")
        }
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: status.size) { buffer, filled in
            while filled < status.size, let base = buffer.baseAddress {
                let got = Glibc.read(descriptor, base + filled, status.size - filled)
                if got < 0, errno == EINTR { continue }
                if got < 0 { failure = errno }
                guard got > 0 else { break }
                filled += got
            }
        }
        guard failure == 0 else { throw UnreadableReport("it cannot be read: \(String(cString: strerror(failure)))") }
        return bytes
    }
}
