import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// A thread with a name, which starts with `body` and is known to have come as far as `ready`.
enum NamedThread {
    /// Starts it and waits until it has called its argument.
    static func start(_ name: String, _ body: @escaping @Sendable (_ ready: @Sendable () -> Void) -> Void) {
        let isReady = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            nameThisThread(name)
            body { isReady.signal() }
        }
        isReady.wait()
    }

    static func nameThisThread(_ name: String) {
        // In effect at once, unlike Foundation's name.
        guard let file = fopen("/proc/thread-self/comm", "w") else { return }
        fputs(name, file)
        fclose(file)
    }
}
