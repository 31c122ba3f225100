import Glibc
import LinuxSupport
import StallWatch

/// The demo's output.
enum StandardOutput {
    /// Writes the text at once, to a terminal and to a pipe.
    static func write(_ text: String) throws(DemoFailure) {
        guard writeAll(Array(text.utf8), to: STDOUT_FILENO) == nil else {
            throw DemoFailure(.inputOutput, "standard output cannot be written: keep its reader running")
        }
    }
}
