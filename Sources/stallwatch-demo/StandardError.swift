import Glibc
import LinuxSupport
import StallWatch

/// The demo's error messages.
enum StandardError {
    /// Writes the text at once.
    ///
    /// Ignores a failure, because there is nowhere to report it.
    static func write(_ text: String) {
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}
