import StallReports
import LinuxSupport
import Glibc

final class FileReader {
    /// The seconds for which a named pipe may have no writer.
    static let writerLimit = 10

    private let descriptor: Int32
    private let path: String
    private var early: [UInt8] = []

    /// Opens the file at `path`, or standard input for `-`; a named pipe may have no writer for some seconds.
    init(path: String, writerLimit limit: Int = writerLimit) throws(CommandFailure) {
        // Without O_NONBLOCK, opening a named pipe waits for its writer (fifo(7)).
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw CommandFailure(reading: path, errno: errno) }
        self.path = path
        self.descriptor = descriptor
        guard path != "-" else { return }
        if FileStatus(descriptor: descriptor)?.isRegular != true { try waitForWriter(seconds: limit) }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    }

    deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

    private func waitForWriter(seconds: Int) throws(CommandFailure) {
        let deadline = monotonicNow() + UInt64(seconds) * 1_000_000_000
        while true {
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // There are bytes, or the writer has come and gone.
            if poll(&state, 1, 50) > 0 { return }
            var byte: UInt8 = 0
            let got = Glibc.read(descriptor, &byte, 1)
            if got > 0 { early = [byte] }
            // EAGAIN: a writer that is silent, as at a terminal. Without a writer, read(2) returns 0.
            if got != 0 { return }
            guard monotonicNow() < deadline else {
                throw CommandFailure(
                    .nothing, "\(path) is a pipe that no program writes to: none came in \(seconds) seconds.")
            }
        }
    }

    /// The next bytes, `count` at most; none at the end.
    func read(_ count: Int) throws(CommandFailure) -> [UInt8] {
        if !early.isEmpty {
            defer { early = [] }
            return early
        }
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

    static func contents(of path: String, limit: Int = StallReport.maximumBytes) throws(UnreadableReport) -> [UInt8] {
        if let bytes = AtomicFile.read(path, limit: limit) { return bytes }
        var error = errno
        if let status = FileStatus(path: path), access(path, R_OK) == 0 {
            guard status.isRegular else { throw UnreadableReport("it is not a regular file") }
            guard status.size <= limit else {
                throw UnreadableReport("it has \(status.size) bytes, and the limit is \(limit)")
            }
        } else {
            error = errno
        }
        throw UnreadableReport("it cannot be read: \(String(cString: strerror(error)))")
    }
}
