internal import Foundation

/// A request to a monitor's control socket: `stallwatch 1 state` and a line feed.
package enum ControlRequest: String, Sendable {
    /// The state of all loops, as ``ControlAnswer/loops``.
    case state
    /// The state of all loops and their latest stalls, as ``ControlAnswer/loops`` and ``ControlAnswer/stalls``.
    case watch
    /// The stacks of all threads, as ``ControlAnswer/report``.
    case stacks
    /// The Swift tasks, as ``ControlAnswer/tasks`` and ``ControlAnswer/report``.
    case tasks
    /// What works for the monitor in its process, as ``ControlAnswer/capabilities`` and ``ControlAnswer/reportDirectory``,
    /// and what it has cost, as ``ControlAnswer/cost``.
    case capabilities
    /// What the monitor finds of stalls that it causes itself, as ``ControlAnswer/proof``.
    case proof

    package static let version = 1
    private static let word = "stallwatch"

    /// The request as the tool sends it, with its line feed.
    package var line: String { "\(Self.word) \(Self.version) \(rawValue)\n" }

    /// Whether the answer takes long, so that a thread of its own gives it.
    package var isSlow: Bool { self != .state && self != .watch }

    private static let socketSuffix = ".socket"

    /// Returns a new name of a socket: processes of several PID namespaces, which share a directory, may have the same id.
    package static func socketName(ofProcess pid: Int32, boot: String) -> String {
        // Short, because the path of a socket is: 2 billion names.
        let random = String(UInt32.random(in: 0..<2_176_782_336), radix: 36)
        return "stallwatch-\(pid)-\(mark(of: boot))\(random)\(socketSuffix)"
    }

    private static func mark(of boot: String) -> String { String(boot.filter(\.isHexDigit).prefix(4)) }

    /// Returns whether the name is one of a boot of the machine: a socket of another host refuses connections, too.
    package static func isSocket(_ name: String, ofBoot boot: String) -> Bool {
        let (words, mark) = (name.split(separator: "-"), mark(of: boot))
        return isSocketName(name) && !mark.isEmpty && words.count == 3 && words[2].hasPrefix(mark)
    }

    package static func isSocketName(_ name: some StringProtocol) -> Bool {
        name.hasPrefix("stallwatch-") && name.hasSuffix(socketSuffix)
    }

    /// Parses a request without its line feed.
    package init(_ line: [UInt8]) throws(Fault) {
        let words = String(decoding: line, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        guard words.count >= 3, !words.contains(""), words[0] == Self.word, let version = Int(words[1]) else {
            throw Fault(message: "this is not a request: use the tool stallwatch")
        }
        guard version == Self.version else {
            throw Fault(message: "the monitor's protocol has version \(Self.version): use the tool of its version")
        }
        guard words.count == 3, let request = Self(rawValue: String(words[2])) else {
            throw Fault(message: "the monitor does not know this request: use the tool of its version")
        }
        self = request
    }

    package struct Fault: Error, Sendable, Equatable {
        /// A sentence, without its period, that says what is wrong and what to do.
        package let message: String
    }
}

/// The answer of a monitor's control socket: one line of JSON.
package struct ControlAnswer: Codable, Sendable {
    package static let maximumBytes = 16 << 20

    package var version = ControlRequest.version
    /// The process's id, in its own pid namespace.
    package var pid: Int32
    /// The loops, sorted by label; `nil` unless the request was ``ControlRequest/state`` or ``ControlRequest/watch``.
    package var loops: [LoopStatistics]?
    /// The latest stalls, the newest first; `nil` unless the request was ``ControlRequest/watch``.
    package var stalls: [StallSummary]?
    /// All threads; `nil` unless the request was ``ControlRequest/stacks`` or ``ControlRequest/tasks``, for which it has
    /// the threads that run tasks.
    package var report: StallReport?
    /// The Swift tasks, for ``ControlRequest/tasks``; for ``ControlRequest/stacks``, one for all in the same state.
    package var tasks: TaskList?
    /// What works; `nil` unless the request was ``ControlRequest/capabilities``.
    package var capabilities: Capabilities?
    /// The monitor's report directory, as the process sees it, with ``capabilities``; `nil` if it has none.
    package var reportDirectory: String?
    /// What the monitor has cost, with ``capabilities``.
    package var cost: MonitorCost?
    /// What was proved; `nil` unless the request was ``ControlRequest/proof``.
    package var proof: MonitorProof?
    /// The reason for a refused or failed request: a sentence without its period.
    package var error: String?
    /// Whether the monitor does not know the request, so that another try is of no use; `nil` if not.
    package var isUnknownRequest: Bool?

    package init(
        pid: Int32, loops: [LoopStatistics]? = nil, stalls: [StallSummary]? = nil, report: StallReport? = nil,
        tasks: TaskList? = nil, error: String? = nil
    ) {
        self.pid = pid
        self.loops = loops
        self.stalls = stalls
        self.report = report
        self.tasks = tasks
        self.error = error
    }

    /// Decodes an answer; `nil` for any other document.
    package init?(jsonData: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(Self.self, from: Data(jsonData)) else { return nil }
        self = decoded
    }

    /// The answer as one line of JSON with a line feed; an error in place of one with more bytes than `limit`.
    package func jsonLine(limit: Int = maximumBytes) -> [UInt8] {
        let line = encodeJSON(self, isIndented: false)
        guard line.count <= limit || error != nil else {
            return Self(pid: pid, error: "the answer has more than \(limit) bytes").jsonLine()
        }
        return line
    }

    package struct StallSummary: Codable, Sendable, Equatable {
        package var id: String
        package var loop: String
        /// The time at which the stalled turn began.
        package var startedAt: Timestamp
        /// The duration in milliseconds; for an ongoing stall, until the monitor last wrote its report.
        package var durationMilliseconds: Double
        /// Whether it had not ended then.
        package var isOngoing: Bool
        package var kind: StallKind
        /// The function to inspect first; `nil` if it is not known, or not known yet.
        package var function: String?
        package var cause: StallReport.CauseKind?
        package var sentence: String?

        package init(_ report: StallReport) {
            id = report.id
            loop = report.loop.label
            startedAt = report.startedAt
            durationMilliseconds = report.durationMilliseconds
            isOngoing = report.state == .ongoing
            kind = report.kind
            function = report.culprit?.function
            cause = report.cause?.kind
            sentence = report.why
        }
    }
}

/// What the monitors of a process have cost it so far, by their own clocks.
///
/// They do not measure the clock reads of the loops' turns, the helper process of each hold, memory and other descriptors.
package struct MonitorCost: Codable, Sendable, Equatable {
    /// The time since the first monitor was made, and the times for which the monitors' threads, and the process since its
    /// own start, were on a CPU, in seconds.
    package var (seconds, cpuSeconds, processCPUSeconds) = (0.0, 0.0, 0.0)
    /// The number of the monitors' threads that run, of the waits of all so far, and of their open files of threads.
    package var (threads, wakeUps, openFiles) = (0, 0, 0)
    /// How often captures kept a thread from running, and for how long in all and at most, in microseconds.
    package var (holds, heldMicroseconds, longestHoldMicroseconds) = (0, 0.0, 0.0)

    package init() {}
}
