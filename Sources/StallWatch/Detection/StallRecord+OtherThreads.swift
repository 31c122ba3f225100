import StackCapture
import StallReports
import LinuxSupport
import Glibc

extension StallRecord {
    /// Threads that are captured beside the loop's at most.
    static let maximumOtherThreads = 256

    /// Captures the threads of the process that are not `target`, nor the monitor's own.
    mutating func captureOtherThreads(than target: CaptureTarget, with services: WatchdogContext) {
        var excluded = services.ownThreads
        if case .thread(let thread) = target { excluded.insert(thread) }
        (otherThreads, omittedThreads) = services.captureAll(than: excluded)
        otherImages = services.capturer.images()
    }
}

extension StallReport.ThreadDescription {
    /// A thread of this process, with the name that it has now.
    init(_ thread: Int32) {
        self.init(id: thread, name: readSmallFile("/proc/self/task/\(thread)/comm").map(firstLine))
    }
}

/// The threads of this process.
enum ThreadList {
    /// The kernel ids of all threads, ascending.
    static func current() -> [Int32] {
        (directoryEntries("/proc/self/task") ?? []).compactMap { Int32($0.name) }.sorted()
    }
}
