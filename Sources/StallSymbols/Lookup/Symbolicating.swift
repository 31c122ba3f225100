import LinuxSupport
import Glibc

/// Gives addresses their names and lines.
///
/// Used by one thread, never a monitored one.
package protocol Symbolicating: AnyObject {
    /// What runs at the virtual address `offset` of `image`'s file.
    ///
    /// `deadline`: In nanoseconds of CLOCK_MONOTONIC. Past it only what is known already is told, and the answer
    /// says that it is unfinished.
    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> CodeLookup

    /// The mangled name of the function at `offset`, for the monitor's own use: told whatever the settings are.
    func symbol(at offset: UInt64, in image: ImageIdentity) -> String?

    /// Why names or lines of the image are missing; `nil` when none are, or none have been asked for.
    func reason(for image: ImageIdentity) -> String?

    /// Gives back the memory of everything that can be read again.
    func releaseMemory()
}
