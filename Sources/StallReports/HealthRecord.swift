internal import Foundation

/// The answer to the question whether the watched loops of a process make progress.
///
/// A monitor writes it to its health file as JSON, and `stallwatch health` reads it there. The states come from the
/// watchdog, never from the loops' own threads. The record says when the watchdog looked: if that is long ago, the
/// watchdog does not run, and the states mean nothing.
public struct HealthRecord: Codable, Sendable, Equatable {
    /// The version of the record's format that this library writes.
    package static let currentVersion = 1
    /// The largest file that counts as a record, in bytes.
    package static let maximumBytes = 1 << 20
    /// The name of the file without a directory entry that holds the path of a monitor's health file.
    package static let pointerName = "stallwatch-health"

    /// The version of the record's format: 1.
    public var version: Int = Self.currentVersion
    /// The state of the process.
    public var state: State
    /// When the watchdog looked, by the wall clock.
    public var checkedAt: Timestamp
    /// When the watchdog looked, in milliseconds of CLOCK_MONOTONIC, which stops while the machine is suspended.
    ///
    /// A reader on the same machine computes the record's age from it.
    public var checkedAtMonotonicMilliseconds: UInt64
    /// When all loops last made progress, by the wall clock; the start of the monitor if they have not yet.
    ///
    /// It is also the modification time of the health file.
    public var progressedAt: Timestamp
    /// The time between two records in the health file, in milliseconds; `nil` if there is no such file.
    public var intervalMilliseconds: Double?
    /// Whether the program has paused the monitor, so that no turn can become a stall.
    public var isPaused: Bool
    /// The process.
    public var process: Process
    /// The watched loops: those that make no progress first, then by label; at most 64.
    public var loops: [Loop]
    /// The number of loops that ``loops`` leaves out.
    public var omittedLoops: Int
    /// The ongoing stall that began first, or the last one that is over; `nil` if there was none.
    public var stall: Stall?

    package init(
        state: State, checkedAt: Timestamp, checkedAtMonotonicMilliseconds: UInt64, progressedAt: Timestamp,
        intervalMilliseconds: Double? = nil, isPaused: Bool = false, process: Process, loops: [Loop],
        omittedLoops: Int = 0, stall: Stall? = nil
    ) {
        self.state = state
        self.checkedAt = checkedAt
        self.checkedAtMonotonicMilliseconds = checkedAtMonotonicMilliseconds
        self.progressedAt = progressedAt
        self.intervalMilliseconds = intervalMilliseconds
        self.isPaused = isPaused
        self.process = process
        self.loops = loops
        self.omittedLoops = omittedLoops
        self.stall = stall
    }

    /// The record as JSON: UTF-8, indented, with sorted keys and a line feed at the end.
    ///
    /// Never empty: encoding cannot fail.
    public func jsonData() -> [UInt8] { encodeJSON(self, isIndented: true) }

    /// Decodes a record; `nil` for any other document, and for a record of a newer version.
    package init?(jsonData: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(HealthRecord.self, from: Data(jsonData)),
            decoded.version <= Self.currentVersion
        else { return nil }
        self = decoded
    }
}

extension HealthRecord {
    /// The state of a process.
    public typealias State = Word<HealthRecord>

    /// The state of a loop.
    public typealias LoopState = Word<HealthRecord.Loop>

    /// A watched loop.
    public struct Loop: Codable, Sendable, Equatable {
        /// The loop's label.
        public var label: String
        /// Whether the loop makes progress.
        public var state: LoopState
        /// When this state began, by the wall clock: for a stall, when the turn began.
        public var since: Timestamp

        package init(label: String, state: LoopState, since: Timestamp) {
            self.label = label
            self.state = state
            self.since = since
        }
    }

    /// A stall in one sentence.
    public struct Stall: Codable, Sendable, Equatable {
        /// The sentence, which names the loop, the duration and, if it is known, the function to inspect first.
        public var sentence: String
        /// Whether the stall continues.
        public var isOngoing: Bool
        /// The function to inspect first; `nil` if it is not known, or not known yet.
        public var function: String?
        /// The id of the stall's report; `nil` if there is no report yet.
        public var report: String?

        package init(sentence: String, isOngoing: Bool, function: String? = nil, report: String? = nil) {
            self.sentence = sentence
            self.isOngoing = isOngoing
            self.function = function
            self.report = report
        }
    }

    /// The process whose loops a record describes.
    public struct Process: Codable, Sendable, Equatable {
        /// The process id.
        public var pid: Int32
        /// The start time in clock ticks since the boot (field 22 of /proc/<pid>/stat); `nil` if unknown.
        public var startTicks: UInt64?
        /// The kernel's id of the boot; `nil` if unknown.
        public var bootID: String?
        /// The kernel's name of the namespace to which the process id belongs; `nil` if unknown.
        public var pidNamespace: String?

        package init(pid: Int32, startTicks: UInt64? = nil, bootID: String? = nil, pidNamespace: String? = nil) {
            self.pid = pid
            self.startTicks = startTicks
            self.bootID = bootID
            self.pidNamespace = pidNamespace
        }
    }

    /// The state of the process in one sentence.
    public var summary: String {
        switch state {
        case .ok:
            let count = loops.count &+ omittedLoops
            return (count == 1 ? "1 loop makes progress" : "\(count) loops make progress")
                + (isPaused ? ", while the program has paused the monitor" : "")
        case .stalled: return stall?.sentence ?? "a loop has stalled"
        case .starting:
            return loops.isEmpty ? "no loop is watched" : "\(labels(.starting)) not begun the first turn"
        case .held: return "a debugger holds a thread: \(labels(.held)) not finished a turn in time"
        case .stopped: return "no monitor runs: the program has stopped it, or has not started it"
        case .off: return "the monitor is turned off by STALLWATCH=off in the environment of the program"
        default: return "the state is \"\(state.rawValue)\", which this version does not know"
        }
    }

    /// The loops in that state, with the verb: "main has", "main and 2 other loops have".
    private func labels(_ state: LoopState) -> String {
        let labels = loops.filter { $0.state == state }.map(\.label)
        guard let first = labels.first else { return "a loop has" }
        guard labels.count > 1 else { return "\(first) has" }
        return "\(first) and \(labels.count == 2 ? "1 other loop" : "\(labels.count - 1) other loops") have"
    }
}

extension HealthRecord.State {
    /// All loops make progress: they wait for events, or their turns are below their thresholds.
    public static var ok: Self { Self(rawValue: "ok") }
    /// A loop is in a turn over its threshold, or a pool starts no new work.
    public static var stalled: Self { Self(rawValue: "stalled") }
    /// A loop has not begun its first turn, and the process has never been ``ok``; or no loop is watched.
    public static var starting: Self { Self(rawValue: "starting") }
    /// A debugger holds the thread of a loop whose turn is over its threshold.
    public static var held: Self { Self(rawValue: "held") }
    /// The program has stopped the monitor, or has not started it.
    public static var stopped: Self { Self(rawValue: "stopped") }
    /// The environment has turned the monitor off (`STALLWATCH=off`): whether the loops make progress is not known.
    public static var off: Self { Self(rawValue: "off") }
}

extension HealthRecord.LoopState {
    /// The loop waits for events, or its turn is below its threshold.
    public static var running: Self { Self(rawValue: "running") }
    /// The loop is in a turn over its threshold, or the pool starts no new work.
    public static var stalled: Self { Self(rawValue: "stalled") }
    /// The loop has not begun its first turn.
    public static var starting: Self { Self(rawValue: "starting") }
    /// A debugger holds the loop's thread in a turn over its threshold.
    public static var held: Self { Self(rawValue: "held") }
    /// The loop's thread has ended within a turn.
    public static var ended: Self { Self(rawValue: "ended") }
}
