import Glibc

/// What went wrong, in a sentence that can be acted on.
public struct StallWatchError: Error, Sendable, Equatable {
    /// The kind of error.
    ///
    /// More kinds may come, so a `switch` over them needs a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String {
            case invalidConfiguration, alreadyWatched, alreadyStarted, stopped, unwritableReports, unreadableImage
            case unreadableReport, failedSink, systemFailure
        }
        private let value: Value
        private init(_ value: Value) { self.value = value }

        /// A value of the configuration is out of its range.
        public static let invalidConfiguration = Code(.invalidConfiguration)
        /// The loop is watched already by this monitor.
        public static let alreadyWatched = Code(.alreadyWatched)
        /// The monitor has been started already.
        public static let alreadyStarted = Code(.alreadyStarted)
        /// The monitor has been stopped; a stopped monitor is not used again.
        public static let stopped = Code(.stopped)
        /// Reports cannot be written where they are asked to be.
        public static let unwritableReports = Code(.unwritableReports)
        /// An ELF file cannot be read.
        ///
        /// Never thrown by the monitor: the frame just has no name.
        public static let unreadableImage = Code(.unreadableImage)
        /// A file is not a stall report, or not one that this version can read.
        public static let unreadableReport = Code(.unreadableReport)
        /// A sink of the app threw an error.
        ///
        /// Never thrown by the monitor: ``StallMonitor/Statistics/lastWriteError`` has it.
        public static let failedSink = Code(.failedSink)
        /// The system refused something that is needed, such as a thread.
        public static let systemFailure = Code(.systemFailure)

        /// The kind's name.
        public var description: String { value.rawValue }
    }

    /// The kind of error.
    public let code: Code
    /// What is wrong, without what to do about it.
    public let message: String
    /// The system's error number, if the system gave one.
    public let errno: Int32?

    package init(_ code: Code, _ message: String, errno: Int32? = nil) {
        self.code = code
        self.message = message
        self.errno = errno
    }
}

extension StallWatchError: CustomStringConvertible {
    /// The message, with the system's own words for the error number behind it.
    public var description: String {
        guard let errno else { return message }
        return "\(message): \(String(cString: strerror(errno)))"
    }
}
