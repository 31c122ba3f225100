import LinuxSupport
import Glibc

/// Finds the names and lines of addresses.
///
/// Only one thread uses it, never a monitored one.
package protocol Symbolicating: AnyObject {
    /// Finds the functions at the virtual address `offset` in the file of `image`.
    ///
    /// After `deadline`, in nanoseconds of CLOCK_MONOTONIC, it returns only known results, marked as unfinished.
    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> CodeLookup

    /// Returns the mangled name of the function at `offset`, for the monitor's own use; it ignores the settings.
    func symbol(at offset: UInt64, in image: ImageIdentity) -> String?

    /// Returns the reason why names or lines of the image are missing; `nil` if none are, or none were requested.
    func reason(for image: ImageIdentity) -> String?

    /// Frees everything that can be read again.
    func releaseMemory()
}
