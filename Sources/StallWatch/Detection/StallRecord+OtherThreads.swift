import StackCapture
import StallReports
import LinuxSupport
import Glibc

extension StallRecord {
    /// The largest number of threads that are captured besides the loop's.
    static let maximumOtherThreads = 256

    /// Captures the threads of the process, except `target` and the monitor's own.
    mutating func captureOtherThreads(than target: CaptureTarget, with services: WatchdogContext) {
        var excluded = services.ownThreads
        if case .thread(let thread) = target { excluded.insert(thread) }
        (otherThreads, omittedThreads) = services.captureAll(than: excluded)
        otherImages = services.capturer.images()
    }
}
