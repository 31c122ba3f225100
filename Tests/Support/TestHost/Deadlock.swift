import Dispatch
import Foundation
import Glibc
import StallWatch

/// A deadlock of the main thread and another thread, until the process is killed.
enum Deadlock {
    static func run(directory: String, threshold: Duration) throws {
        let monitor = try StallMonitor(.init(threshold: .fixed(threshold), reports: .directory(directory)))
        try monitor.watch(.mainRunLoop)
        try monitor.start()
        let (first, second) = (NSLock(), NSLock())
        let (hasSecond, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isThere = DispatchSemaphore(value: 0)
        startThread("bystander") {
            isThere.signal()
            pause()
        }
        isThere.wait()
        startThread("other-side") {
            second.lock()
            hasSecond.signal()
            mayGoOn.wait()
            first.lock()
            tell("came back")
        }
        hasSecond.wait()
        stallOnce {
            first.lock()
            mayGoOn.signal()
            second.lock()
            tell("came back")
        }
    }

    static func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread {
            // Takes effect at once, unlike Foundation's thread name.
            if let file = fopen("/proc/thread-self/comm", "w") {
                fputs(name, file)
                fclose(file)
            }
            body()
        }
    }
}
