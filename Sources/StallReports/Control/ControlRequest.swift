/// A request to a monitor's control socket: `stallwatch 1 state` and a line feed.
package enum ControlRequest: Sendable, Equatable {
    /// The state of all loops, as ``ControlAnswer/loops``.
    case state
    /// The state of all loops and their latest stalls, as ``ControlAnswer/loops`` and ``ControlAnswer/stalls``.
    case watch
    /// The stacks of all threads, as ``ControlAnswer/report``.
    case stacks
    /// Samples of the loops' threads, as ``ControlAnswer/profile``.
    case profile(ProfilePlan)

    /// The version of the protocol.
    package static let version = 1
    private static let word = "stallwatch"

    /// The request as the tool sends it, with its line feed.
    package var line: String { "\(Self.word) \(Self.version) \(words)\n" }

    private var words: String {
        guard case .profile(let plan) = self else { return name }
        return "\(name) \(plan.seconds) \(plan.hertz)"
    }

    /// The request's word, without its numbers.
    package var name: String {
        switch self {
        case .state: "state"
        case .watch: "watch"
        case .stacks: "stacks"
        case .profile: "profile"
        }
    }

    /// Whether the answer takes long, so that a thread of its own gives it.
    package var isSlow: Bool {
        switch self {
        case .state, .watch: false
        case .stacks, .profile: true
        }
    }

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
        guard words.count >= 3, !words.contains(""), words[0] == Self.word, let version = Int(words[1]) else {
            throw Fault("this is not a request: use the tool stallwatch")
        }
        guard version == Self.version else {
            throw Fault("the monitor's protocol has version \(Self.version): use the tool of its version")
        }
        switch (words[2], words.count) {
        case ("state", 3): self = .state
        case ("watch", 3): self = .watch
        case ("stacks", 3): self = .stacks
        case ("profile", 5):
            guard let seconds = Int(words[3]), let hertz = Int(words[4]),
                let plan = ProfilePlan(seconds: seconds, hertz: hertz)
            else {
                throw Fault(
                    """
                    a profile takes \(ProfilePlan.seconds.lowerBound) to \(ProfilePlan.seconds.upperBound) seconds, at \
                    \(ProfilePlan.hertz.lowerBound) to \(ProfilePlan.hertz.upperBound) samples a second
                    """
                )
            }
            self = .profile(plan)
        default: throw Fault("the monitor does not know this request: use the tool of its version")
        }
    }

    /// A line that is no request.
    package struct Fault: Error, Sendable, Equatable {
        /// A sentence, without its period, that says what is wrong and what to do.
        package let message: String

        init(_ message: String) { self.message = message }
    }
}
