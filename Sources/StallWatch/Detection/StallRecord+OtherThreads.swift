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
