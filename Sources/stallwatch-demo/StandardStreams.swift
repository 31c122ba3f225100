import Glibc

/// What the demo prints.
enum StandardOutput {
    /// Writes at once, whether a terminal or a pipe is behind it.
    static func write(_ text: String) throws(DemoFailure) {
        guard writeAll(Array(text.utf8), to: STDOUT_FILENO) == nil else {
            throw DemoFailure(.inputOutput, "standard output cannot be written")
        }
    }
}

/// What the demo complains about.
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
