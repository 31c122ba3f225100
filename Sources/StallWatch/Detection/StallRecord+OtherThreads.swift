import StackCapture
import StallReports
import LinuxSupport
import Glibc

extension StallRecord {
    /// The largest number of threads that are captured besides the loop's.
    static let maximumOtherThreads = 256

    /// Captures the threads of the process, except `target` and the monitor's own, and what they wait for.
    mutating func captureOtherThreads(than target: CaptureTarget, with services: WatchdogContext) {
        var excluded = services.ownThreads
        if case .thread(let thread) = target { excluded.insert(thread) }
        (otherThreads, omittedThreads) = services.captureAll(than: excluded)
        otherImages = services.capturer.images()
        var waits: [Int32: ThreadWait] = [:]
        for other in otherThreads {
            waits[other.thread.id] = services.wait(of: other.thread.id, try? other.stack.get())
        }
        if case .thread(let thread) = target {
            waits[thread] = services.wait(of: thread, samples.lazy.compactMap { try? $0.stack.get() }.last)
        }
        services.markDeadlocks(&waits)
        for index in otherThreads.indices { otherThreads[index].wait = waits[otherThreads[index].thread.id] }
    }
}
