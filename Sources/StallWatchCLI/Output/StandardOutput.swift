import Glibc
import LinuxSupport

/// The tool's output.
enum StandardOutput {
    /// Writes at once.
    ///
    /// - Throws: ``ReaderGone`` when the reader has closed its end; else a ``CommandFailure``.
    static func write(_ text: String) throws { try write(Array(text.utf8)) }

    /// Writes at once.
    ///
    /// - Throws: ``ReaderGone`` when the reader has closed its end; else a ``CommandFailure``.
    static func write(_ bytes: [UInt8]) throws {
        guard let error = writeAll(bytes, to: STDOUT_FILENO) else { return }
        if error == EPIPE { throw ReaderGone() }
        throw CommandFailure(.inputOutput, "standard output cannot be written: \(String(cString: strerror(error)))")
    }

    /// Whether the reader has closed its end.
    ///
    /// Hours may pass without a write that would show it.
    static var readerIsGone: Bool {
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR | POLLNVAL) != 0
    }
}

/// Errors, warnings and progress.
enum StandardError {
    /// Writes at once.
    ///
    /// Errors are ignored: there is no other place to report them.
    static func write(_ text: String) {
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}

/// The reader has closed standard output, as in `stallwatch top | head`.
///
/// This ends the command without an error.
struct ReaderGone: Error {}
