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

/// Writes everything.
///
/// Returns the error number of what failed, or `nil`.
func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
    bytes.withUnsafeBytes { buffer in
        var left = buffer[...]
        while !left.isEmpty {
            let count = write(descriptor, UnsafeRawBufferPointer(rebasing: left).baseAddress, left.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count < 0 ? errno : EIO }
            left = left.dropFirst(count)
        }
        return nil
    }
}
