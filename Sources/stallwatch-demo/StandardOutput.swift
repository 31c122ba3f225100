import Glibc
import LinuxSupport
import StallWatch

/// What the demo prints.
enum StandardOutput {
    /// Writes at once, whether a terminal or a pipe is behind it.
    static func write(_ text: String) throws(DemoFailure) {
        guard writeAll(Array(text.utf8), to: STDOUT_FILENO) == nil else {
            throw DemoFailure(.inputOutput, "standard output cannot be written")
        }
    }
}
