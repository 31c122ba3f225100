import LinuxSupport
import Glibc

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
}
