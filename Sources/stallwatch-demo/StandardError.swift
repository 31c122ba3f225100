import Glibc
import LinuxSupport
import StallWatch

/// What the demo complains about.
enum StandardError {
    /// Writes at once.
    ///
    /// Where this fails, there is nowhere to say so.
    static func write(_ text: String) {
        _ = writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}
