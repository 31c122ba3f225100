internal import Foundation

/// The answer to the question whether the watched loops of a process make progress.
///
/// A monitor writes it to its health file as JSON, and `stallwatch health` reads it there. The states come from the
/// watchdog, never from the loops' own threads. The record has the time of the watchdog's last check: if that is
/// long ago, the watchdog does not run, and the states mean nothing.
public struct HealthRecord: Codable, Sendable, Equatable {
    package static let currentVersion = 1
    /// The largest file that counts as a record, in bytes.
    package static let maximumBytes = 1 << 20
    /// The name of the file without a directory entry that holds the path of a monitor's health file.
    package static let pointerName = "stallwatch-health"

    package var version: Int = Self.currentVersion
    /// The state of the process.
    public var state: HealthState
    /// The time of the watchdog's check, by the wall clock.
    public var checkedAt: Timestamp
    /// The check's time in milliseconds of CLOCK_MONOTONIC (not in suspension), for the record's age on the machine.
    package var checkedAtMonotonicMilliseconds: UInt64
    /// When all loops last made progress, or the monitor began, by the wall clock: the health file's modification time.
    package var progressedAt: Timestamp
    /// The time between two records in the health file, in milliseconds; `nil` if there is no such file.
    package var intervalMilliseconds: Double?
    /// Whether the program has paused the monitor, so that no turn can become a stall.
    package var isPaused: Bool
    package var process: Process
    /// The watched loops: those that make no progress first, then by label; at most 64.
    package var loops: [LoopHealth]
    package var omittedLoops: Int
    /// The ongoing stall that began first, or the last one that is over; `nil` if there was none.
    package var stall: Stall?
    /// What the monitor has proved right after its start; `nil` if it was not asked, or has not finished.
    package var proof: Proof?

    package init(
        state: HealthState, checkedAt: Timestamp, checkedAtMonotonicMilliseconds: UInt64, progressedAt: Timestamp,
        intervalMilliseconds: Double? = nil, isPaused: Bool = false, process: Process, loops: [LoopHealth],
        omittedLoops: Int = 0, stall: Stall? = nil
    ) {
        (self.state, self.checkedAt) = (state, checkedAt)
        (self.checkedAtMonotonicMilliseconds, self.progressedAt) = (checkedAtMonotonicMilliseconds, progressedAt)
        (self.intervalMilliseconds, self.isPaused, self.process) = (intervalMilliseconds, isPaused, process)
        (self.loops, self.omittedLoops, self.stall) = (loops, omittedLoops, stall)
    }

    /// As JSON in UTF-8, indented, with sorted keys and a line feed at the end; never empty.
    package func jsonData() -> [UInt8] { encodeJSON(self, isIndented: true) }

    /// Decodes a record; `nil` for any other document, and for a record of a newer version.
    package init?(jsonData: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(HealthRecord.self, from: Data(jsonData)),
            decoded.version <= Self.currentVersion
        else { return nil }
        self = decoded
    }
}

extension HealthRecord {
    package struct LoopHealth: Codable, Sendable, Equatable {
        package var label: String
        package var state: LoopHealthState
        /// When this state began, by the wall clock: for a stall, when the turn began.
        package var since: Timestamp

        package init(label: String, state: LoopHealthState, since: Timestamp) {
            (self.label, self.state, self.since) = (label, state, since)
        }
    }

    package struct Stall: Codable, Sendable, Equatable {
        /// The sentence, which names the loop, the duration and, if it is known, the function to inspect first.
        package var sentence: String
        package var isOngoing: Bool
        /// The function to inspect first; `nil` if it is not known, or not known yet.
        package var function: String?
        /// The id of the stall's report; `nil` if there is no report yet.
        package var report: String?

        package init(sentence: String, isOngoing: Bool, function: String? = nil, report: String? = nil) {
            (self.sentence, self.isOngoing, self.function, self.report) = (sentence, isOngoing, function, report)
        }
    }

    package struct Proof: Codable, Sendable, Equatable {
        package var isWhole: Bool
        package var sentence: String

        package init(_ proof: MonitorProof) { (isWhole, sentence) = (proof.isWhole, proof.summary) }
    }

    package struct Process: Codable, Sendable, Equatable {
        package var pid: Int32
        /// The start time in clock ticks since the boot (field 22 of /proc/<pid>/stat); `nil` if unknown.
        package var startTicks: UInt64?
        package var bootID: String?
        /// The kernel's name of the namespace to which the process id belongs; `nil` if unknown.
        package var pidNamespace: String?
        /// The host's name; `nil` from versions that did not write it.
        package var hostname: String?

        package init(pid: Int32, startTicks: UInt64? = nil, bootID: String? = nil, pidNamespace: String? = nil) {
            (self.pid, self.startTicks, self.bootID, self.pidNamespace) = (pid, startTicks, bootID, pidNamespace)
        }
    }

    /// The state of the process in one sentence.
    public var summary: String { words.withoutControls }

    private var words: String {
        switch state {
        case .ok:
            let count = loops.count &+ omittedLoops
            let progress = count == 1 ? "1 loop makes progress" : "\(count) loops make progress"
            return (count == 0 ? "no loop is watched now" : progress)
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
    private func labels(_ state: LoopHealthState) -> String {
        let labels = loops.filter { $0.state == state }.map(\.label)
        guard let first = labels.first else { return "a loop has" }
        guard labels.count > 1 else { return "\(first) has" }
        return "\(first) and \(labels.count == 2 ? "1 other loop" : "\(labels.count - 1) other loops") have"
    }
}

/// The state of a process in a health record.
public typealias HealthState = Word<HealthRecord>

extension HealthState {
    /// All loops make progress: they wait for events, or their turns are below their thresholds.
    ///
    /// Also if no loop is left.
    public static var ok: Self { Self(rawValue: "ok") }
    /// A loop is in a turn over its threshold, or a pool starts no new work.
    public static var stalled: Self { Self(rawValue: "stalled") }
    /// The process has never been ``ok``: a loop has not begun its first turn, or no loop is watched.
    public static var starting: Self { Self(rawValue: "starting") }
    /// A debugger holds the thread of a loop whose turn is over its threshold.
    public static var held: Self { Self(rawValue: "held") }
    /// The program has stopped the monitor, or has not started it.
    public static var stopped: Self { Self(rawValue: "stopped") }
    /// The environment has turned the monitor off (`STALLWATCH=off`): whether the loops make progress is not known.
    public static var off: Self { Self(rawValue: "off") }
}

package typealias LoopHealthState = Word<HealthRecord.LoopHealth>

extension LoopHealthState {
    /// The loop waits for events, or its turn is below its threshold.
    package static var running: Self { Self(rawValue: "running") }
    /// The loop is in a turn over its threshold, or the pool starts no new work.
    package static var stalled: Self { Self(rawValue: "stalled") }
    /// The loop has not begun its first turn.
    package static var starting: Self { Self(rawValue: "starting") }
    /// A debugger holds the loop's thread in a turn over its threshold.
    package static var held: Self { Self(rawValue: "held") }
    /// The loop's thread has ended within a turn.
    package static var ended: Self { Self(rawValue: "ended") }
}
