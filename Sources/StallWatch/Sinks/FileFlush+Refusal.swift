import Glibc
import LinuxSupport

extension FileFlush {
    /// Returns the path and the reason if a file cannot be flushed to the disk; `nil` if it can.
    func refusal(of path: String) -> String? {
        guard case .unavailable(let error) = self else { return nil }
        return "\(path): fsync: \(String(cString: strerror(error)))"
    }
}
