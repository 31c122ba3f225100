import LinuxSupport
import Glibc

/// Where all that the tool prints goes through.
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

/// Where everything beside the result goes: errors, warnings, progress.
enum StandardError {
    /// Writes at once.
    ///
    /// Where this fails, there is nowhere to say so.
    static func write(_ text: String) {
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}
