import Glibc

/// A call of the system that failed, with what the caller can do about it.
package struct SystemError: Error, Sendable, Equatable {
    /// What failed and what to do, as a sentence without its full stop.
    package let message: String
    /// The system's error number; `nil` if the system gave none.
    package let errno: Int32?

    package init(_ message: String, errno: Int32? = nil) {
        self.message = message
        self.errno = errno
    }
}

extension SystemError: CustomStringConvertible {
    /// The message, followed by the system's description of the error number.
    package var description: String {
        guard let errno else { return message }
        return "\(message): \(String(cString: strerror(errno)))"
    }
}
