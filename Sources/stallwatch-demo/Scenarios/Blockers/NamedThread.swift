import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// A named thread that runs `body` and says when it is ready.
enum NamedThread {
    /// Starts the thread and waits until `body` has called its argument.
    static func start(_ name: String, _ body: @escaping @Sendable (_ ready: @Sendable () -> Void) -> Void) {
        let isReady = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            nameThisThread(name)
            body { isReady.signal() }
        }
        isReady.wait()
    }

    static func nameThisThread(_ name: String) {
        // Takes effect at once, unlike the name of a Foundation thread.
        guard let file = fopen("/proc/thread-self/comm", "w") else { return }
        fputs(name, file)
        fclose(file)
    }
}
