internal import CLinux
import Glibc

/// Whether /proc shows the threads of this process under their own ids.
///
/// It does not where it is not mounted, and where it belongs to another PID namespace, as after `unshare --pid --fork`
/// without `--mount-proc`: there other numbers stand for the same threads, and the same numbers for other processes.
package var showsOwnThreads: Bool { access("/proc/self/task/\(clinux_gettid())", F_OK) == 0 }

/// Whether /proc belongs to another PID namespace.
package var isProcForeign: Bool { access("/proc/self/task", F_OK) == 0 && !showsOwnThreads }

package var callingThread: Int32 { clinux_gettid() }

/// The files in /proc/<pid>/task/<tid> that diagnoses and captures read.
package enum ThreadFile: String, CaseIterable, Sendable {
    case syscall, wchan, schedstat, stat, status, stack

    package enum Answer: Equatable, Sendable {
        case shown
        /// The file is there, and does not show its value.
        case hidden
        case missing(errno: Int32)
    }

    /// Reads the file in a thread's directory; `wchan` and `stack` are empty unless the thread waits.
    ///
    /// A hidden value is read again, up to so many `times` a millisecond apart: a thread that was preempted on its way to
    /// sleep is shown as asleep, but not yet what it waits in.
    package func read(in directory: String, times: Int = 20) -> Answer {
        guard let text = readSmallFile("\(directory)/\(rawValue)") else { return .missing(errno: errno) }
        if isShown(text) { return .shown }
        guard times > 1 else { return .hidden }
        usleep(1_000)
        return read(in: directory, times: times - 1)
    }

    func isShown(_ text: String) -> Bool {
        var cursor = ByteCursor(text)
        switch self {
        // "running", or numbers.
        case .syscall, .stack: return cursor.next != nil
        // The kernel writes "0" for a thread that does not wait, and for a reader without permission.
        case .wchan: return WaitChannel.function(in: text) != nil
        // A kernel that does not count shows zeros.
        case .schedstat:
            cursor.skipWords(2)
            return (cursor.number() ?? 0) > 0
        case .stat: return ProcStat(text) != nil
        case .status: return cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:")
        }
    }
}

/// The fields of /proc/<pid>/stat that StallWatch uses (proc_pid_stat(5)), of a process or of a thread.
package struct ProcStat: Equatable {
    /// The state (field 3): a letter.
    package var state: UInt8
    /// The id of the parent process (field 4).
    package var parent: Int32
    /// The scheduler's priority (field 18): 20 above the nice value; below 0 for a real-time thread.
    package var priority: Int32
    /// The number of threads (field 20).
    package var threads: Int
    /// The start time in clock ticks since the boot (field 22).
    package var startTicks: UInt64
    /// The signal that the parent gets at the end (field 38); `nil` if the kernel does not show it.
    package var exitSignal: Int32?
    /// The CPU on which it ran last (field 39); `nil` if the kernel does not show it.
    package var processor: Int32?

    package var isReady: Bool { state == UInt8(ascii: "R") }

    package var letter: String { String(UnicodeScalar(state)) }

    /// The start time in nanoseconds of CLOCK_BOOTTIME, in steps of a clock tick.
    package var startedAt: UInt64 { startTicks &* clockTick }

    /// Whether it started after a time of CLOCK_BOOTTIME: what had this id then was another one.
    package func isYounger(than time: UInt64) -> Bool { startedAt > time + Self.startTolerance }

    /// The time by which it may seem to start later than it did, in nanoseconds: two ticks.
    private static let startTolerance: UInt64 = 20_000_000

    /// Parses the file's text; `nil` if it lacks a field.
    package init?(_ text: String) {
        var fields = ByteCursor(text)
        // The command's name in parentheses may contain any character: count fields from the last parenthesis.
        guard fields.skip(pastLast: UInt8(ascii: ")")), let state = fields.next else { return nil }
        fields.skipWords(1)
        guard let parent = fields.number() else { return nil }
        fields.skipWords(13)
        guard let priority = fields.word().flatMap({ Int32($0) }) else { return nil }
        fields.skipWords(1)
        guard let threads = fields.number() else { return nil }
        fields.skipWords(1)
        guard let startTicks = fields.number() else { return nil }
        self.state = state
        self.parent = Int32(clamping: parent)
        self.priority = priority
        self.threads = Int(clamping: threads)
        self.startTicks = startTicks
        fields.skipWords(15)
        // -1 for a thread that is not the first one.
        exitSignal = fields.word().flatMap { Int32($0) }
        processor = fields.word().flatMap { Int32($0) }
    }
}

/// The kernel function that a thread waits in (proc_pid_wchan(5)).
package enum WaitChannel {
    /// Returns the function's name; `nil` if the thread waits in none, or the system does not show it.
    package static func function(in text: String) -> String? {
        var text = ByteCursor(text)
        return text.word().flatMap { $0 == "0" ? nil : $0 }
    }
}
