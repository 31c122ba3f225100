internal import Foundation

/// An error of StallWatch, with a message for the developer.
public struct StallWatchError: Error, Sendable, Equatable {
    /// A kind of error.
    ///
    /// Later versions may add kinds, so a `switch` over them needs a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, such as `alreadyWatched`.
        public let description: String
        private init(_ description: String) { self.description = description }

        /// A value of the configuration is out of its range.
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// This monitor already watches the loop.
        public static let alreadyWatched = Code("alreadyWatched")
        /// The monitor is already started.
        public static let alreadyStarted = Code("alreadyStarted")
        /// The monitor is stopped, and cannot be used again.
        public static let stopped = Code("stopped")
        /// The configured destination for reports is not writable.
        public static let unwritableReports = Code("unwritableReports")
        /// An ELF file is missing, unreadable or damaged.
        ///
        /// The monitor never throws it: the frames of such an image have no names.
        package static let unreadableImage = Code("unreadableImage")
        /// A file is not a stall report, or its schema is newer than this version.
        public static let unreadableReport = Code("unreadableReport")
        /// A sink of the app threw an error.
        ///
        /// The monitor never throws it: ``MonitorStatistics/lastWriteError`` contains it.
        package static let failedSink = Code("failedSink")
        /// The system refused a resource that StallWatch needs, such as a thread.
        public static let systemFailure = Code("systemFailure")
    }

    /// The kind of this error.
    public let code: Code
    /// A sentence that says what is wrong and, if the caller can help it, what to do.
    ///
    /// Does not contain the system's description of ``errno``.
    public let message: String
    /// The system's error number (errno(3)); `nil` if no system call failed.
    public let errno: Int32?

    package init(_ code: Code, _ message: String, errno: Int32? = nil) {
        (self.code, self.message, self.errno) = (code, message, errno)
    }
}

extension StallWatchError: CustomStringConvertible {
    /// The message, followed by the system's description of ``errno``.
    public var description: String {
        guard let errno else { return message }
        return "\(message): \(String(cString: strerror(errno)))"
    }
}

/// The version of the library and the tool, contained in every report.
package enum StallWatchVersion {
    package static let current = "0.2.0"
}
