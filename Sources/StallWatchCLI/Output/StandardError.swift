import LinuxSupport
import Glibc

/// Errors, warnings and progress.
enum StandardError {
    /// Writes at once.
    ///
    /// Errors are ignored: there is no other place to report them.
    static func write(_ text: String) {
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}
