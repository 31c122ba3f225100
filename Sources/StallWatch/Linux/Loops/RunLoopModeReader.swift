internal import CLinux
internal import CoreFoundation
import Glibc
import LinuxSupport
import Synchronization

/// How far the clock of dates is ahead of the monotonic clock, in seconds: the least of all readings (a pure value).
///
/// A timer fires by the monotonic clock, and keeps a date from when it was set. A suspension, and a step of the clock of
/// dates, make this date come too early; by the least lead it never does. A timer that was set since then seems to be due
/// too late by as much.
struct ClockLead {
    private var least = Double.infinity

    /// Adds a reading of the clock of dates, in seconds, that was taken right after a moment in monotonic nanoseconds.
    mutating func add(date: Double, at now: UInt64) { least = min(least, date - Double(now) / 1e9) }

    /// Returns when a timer with a date is due at the latest, in monotonic nanoseconds.
    func due(_ date: Double) -> UInt64 {
        let due = (date - least) * 1e9
        return due < 1e18 ? UInt64(max(due, 0)) : 1_000_000_000_000_000_000
    }
}

/// Finds out in which mode a run loop runs, and what waits for its default mode.
///
/// CFRunLoopCopyCurrentMode and CFRunLoopGetNextTimerFireDate take the run loop's locks, and CFRunLoop.c calls an app's
/// `retain` callbacks with these locks held. So the watchdog never calls them: one thread asks all loops, and leaves
/// the others to a new one while it waits. If the locks stay taken, there is no answer, and no other question.
///
/// `@unchecked Sendable`: both functions may be called on any thread.
final class RunLoopModeReader: @unchecked Sendable {
    struct Answer: Equatable {
        /// When the question was answered, in monotonic nanoseconds.
        var time: UInt64
        /// The mode of the innermost run; `nil` if the loop does not run.
        var mode: String?
        var isDefaultMode = false
        /// When the default mode's first timer was due, by ``ClockLead``, in monotonic nanoseconds; `nil` if it was not.
        ///
        /// It may be the timer whose callout goes on.
        var timerDate: UInt64?
        /// Whether the kernel's timer of a run loop's mode, or another one of the process, has expired and is not read:
        /// libdispatch never reads its own.
        var hasExpiredTimer = false
        var hasMainQueueWork = false

        /// Whether a timer of the default mode waits to be fired: CFRunLoop arms the kernel's timer for the first that is
        /// not in its callout, and reads it when it fires.
        var isTimerDue: Bool { timerDate != nil && hasExpiredTimer }

        var dueTimers: [DueTimer] { timerDate.map { [DueTimer(due: $0, interval: 0)] } ?? [] }
    }

    private let runLoop: CFRunLoop
    private let isMain: Bool
    /// Asks at most a tenth of a second late because of another loop.
    private static let thread = JobThread(name: "stallwatch-mode", patience: 100_000_000)
    private let isAsking = Atomic<Bool>(false)
    private let answer = Mutex<Answer?>(nil)
    /// The largest number of descriptors of the process that are searched for timers.
    private static let maximumDescriptors = 1_024
    /// Since the first watch of a run loop.
    private static let lead = ProcessMutex(ClockLead())

    init(_ runLoop: CFRunLoop) {
        self.runLoop = runLoop
        isMain = CFEqual(runLoop, CFRunLoopGetMain())
        _ = Self.readLead(at: monotonicNow())
    }

    /// Reads the clock of dates right after `now`.
    private static func readLead(at now: UInt64) -> ClockLead {
        let date = CFAbsoluteTimeGetCurrent()
        return lead.withLock { lead in
            lead.add(date: date, at: now)
            return lead
        }
    }

    func ask() {
        guard !isAsking.exchange(true, ordering: .acquiringAndReleasing) else {
            // The question may be behind that of a loop whose locks stay taken.
            Self.thread.relieve()
            return
        }
        let begins = Self.thread.add { [self] in
            let answer = read()
            self.answer.withLock { $0 = answer }
            isAsking.store(false, ordering: .releasing)
        }
        if !begins { isAsking.store(false, ordering: .releasing) }
    }

    func takeAnswer() -> Answer? { answer.withLock { $0.take() } }

    /// Asks now, which may wait for the loop's locks.
    func read() -> Answer {
        var answer = Answer(time: 0)
        if let mode = CFRunLoopCopyCurrentMode(runLoop) {
            answer.mode = RunLoopSource.name(mode)
            answer.isDefaultMode = CFEqual(mode, kCFRunLoopDefaultMode)
        }
        if let mode = kCFRunLoopDefaultMode {
            let date = CFRunLoopGetNextTimerFireDate(runLoop, mode)
            let now = monotonicNow()
            let due = Self.readLead(at: now).due(date)
            if date != 0, due <= now { answer.timerDate = due }
        }
        answer.hasExpiredTimer = answer.timerDate != nil && Self.hasExpiredTimer()
        if isMain, case let descriptor = clinux_main_queue_descriptor(), descriptor >= 0 {
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            answer.hasMainQueueWork = Glibc.poll(&request, 1, 0) == 1 && request.revents & Int16(POLLIN) != 0
        }
        answer.time = monotonicNow()
        return answer
    }

    /// Whether a timer of timerfd_create(2) has expired and was not read (`ticks` in proc_pid_fdinfo(5)).
    private static func hasExpiredTimer() -> Bool {
        (directoryEntries("/proc/self/fd") ?? []).prefix(maximumDescriptors).contains { entry in
            guard readLink("/proc/self/fd/\(entry.name)") == "anon_inode:[timerfd]",
                let text = readSmallFile("/proc/self/fdinfo/\(entry.name)")
            else { return false }
            return text.split(separator: "\n").contains { $0.hasPrefix("ticks:") && $0 != "ticks: 0" }
        }
    }
}
