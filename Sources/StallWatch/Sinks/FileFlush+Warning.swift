import Glibc
import LinuxSupport

extension FileFlush {
    /// Returns a sentence for the log about a file that cannot be flushed to the disk; `nil` if it can.
    func warning(about path: String) -> String? {
        guard case .unavailable(let error) = self else { return nil }
        let reason = String(cString: strerror(error))
        return "\(path) cannot be flushed to the disk (fsync: \(reason)): a power failure may lose its newest reports"
    }
}
