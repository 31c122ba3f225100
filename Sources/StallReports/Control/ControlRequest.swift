/// A request to a monitor's control socket: `stallwatch 1 state` and a line feed.
package enum ControlRequest: String, Sendable, CaseIterable {
    /// The state of all loops, as ``ControlAnswer/loops``.
    case state
    /// The stacks of all threads, as ``ControlAnswer/report``.
    case stacks

    /// The version of the protocol.
    package static let version = 1
    private static let word = "stallwatch"

    /// The request as the tool sends it, with its line feed.
    package var line: String { "\(Self.word) \(Self.version) \(rawValue)\n" }

    /// The first part of a control socket's file name.
    package static let socketPrefix = "stallwatch-"
    /// The last part of a control socket's file name.
    package static let socketSuffix = ".socket"

    /// Returns the file name of a process's control socket.
    package static func socketName(ofProcess pid: Int32) -> String { "\(socketPrefix)\(pid)\(socketSuffix)" }

    /// Parses a request without its line feed.
    ///
    /// - Parameter line: The request's bytes.
    /// - Throws: ``Fault`` for any other line.
    package init(_ line: [UInt8]) throws(Fault) {
        let words = String(decoding: line, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[0] == Self.word, let version = Int(words[1]) else {
            throw Fault("this is not a request: use the tool stallwatch")
        }
        guard version == Self.version else {
            throw Fault("the monitor's protocol has version \(Self.version): use the tool of its version")
        }
        guard let request = Self(rawValue: String(words[2])) else {
            throw Fault("the monitor does not know this request: use the tool of its version")
        }
        self = request
    }

    /// A line that is no request.
    package struct Fault: Error, Sendable, Equatable {
        /// A sentence, without its period, that says what is wrong and what to do.
        package let message: String

        init(_ message: String) { self.message = message }
    }
}
