import Glibc

/// A failed system call, with a message that says what to do.
package struct SystemError: Error, Sendable, Equatable {
    /// A sentence, without its period, that says what failed and what to do.
    package let message: String
    /// The system's error number (errno(3)); `nil` if there is none.
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
