internal import CLinux
internal import CoreFoundation
import Glibc
import LinuxSupport
import Synchronization

/// Finds out in which mode a run loop runs, and what waits for its default mode.
///
/// CFRunLoopCopyCurrentMode and CFRunLoopGetNextTimerFireDate take the run loop's locks, and CFRunLoop.c calls an app's
/// `retain` callbacks with these locks held. So the watchdog never calls them: each question has a thread of its own,
/// which may wait, and there is one at a time. If the locks stay taken, there is no answer, and no other thread.
///
/// `@unchecked Sendable`: both functions may be called on any thread.
final class RunLoopModeReader: @unchecked Sendable {
    struct Answer: Equatable {
        /// When the question was answered, in monotonic nanoseconds.
        var time: UInt64
        /// The mode of the innermost run; `nil` if the loop does not run.
        var mode: String?
        var isDefaultMode = false
        /// The date of the default mode's first timer, in monotonic nanoseconds; `nil` if it has not come.
        ///
        /// It is also the date of a timer whose callout goes on, and it is not moved when the wall clock is set.
        var timerDate: UInt64?
        /// Whether the kernel's timer of a run loop's mode, or another one of the process, has expired and is not read.
        var hasExpiredTimer = false
        var hasMainQueueWork = false

        /// Whether a timer of the default mode waits to be fired: CFRunLoop arms the kernel's timer for the first that is
        /// not in its callout, and reads it when it fires.
        var isTimerDue: Bool { timerDate != nil && hasExpiredTimer }

        var dueTimers: [DueTimer] { timerDate.map { [DueTimer(due: $0, interval: 0)] } ?? [] }
    }

    private let runLoop: CFRunLoop
    private let isMain: Bool
    private let worker = Worker(name: "stallwatch-mode")
    private let answer = Mutex<Answer?>(nil)
    /// The largest number of descriptors of the process that are searched for timers.
    private static let maximumDescriptors = 1_024

    init(_ runLoop: CFRunLoop) {
        self.runLoop = runLoop
        isMain = CFEqual(runLoop, CFRunLoopGetMain())
    }

    func ask() {
        _ = try? worker.start { [self] in
            let answer = read()
            self.answer.withLock { $0 = answer }
        }
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
            let late = CFAbsoluteTimeGetCurrent() - date
            if date != 0, late >= 0 {
                let age = UInt64(min(late, 1e9) * 1e9)
                let now = monotonicNow()
                answer.timerDate = now - min(age, now)
            }
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
