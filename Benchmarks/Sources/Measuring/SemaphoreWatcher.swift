package import CoreFoundation
import Dispatch
import Foundation
import Synchronization

/// The watchdog of most articles: each activity of the loop signals a semaphore, for which a thread waits 50 ms at a time.
package final class SemaphoreWatcher: Sendable {
    package static let threadName = "semaphore-dog"
    private let semaphore = DispatchSemaphore(value: 0)
    private let activity = Atomic<UInt>(0)
    private let stalls = Atomic<Int>(0)
    private let isStopping = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)

    package init() {
        let thread = Thread { self.watch() }
        // Before it runs: Foundation hands a name to the kernel only when the thread starts.
        thread.name = Self.threadName
        thread.start()
    }

    package func note(_ activity: CFRunLoopActivity) {
        self.activity.store(UInt(activity.rawValue), ordering: .relaxed)
        semaphore.signal()
    }

    package func stop() {
        isStopping.store(true, ordering: .relaxed)
        ended.wait()
    }

    private func watch() {
        let working = [CFRunLoopActivity.beforeSources, .afterWaiting].map { UInt($0.rawValue) }
        while !isStopping.load(ordering: .relaxed) {
            guard semaphore.wait(timeout: .now() + .milliseconds(50)) == .timedOut else { continue }
            if working.contains(activity.load(ordering: .relaxed)) { stalls.add(1, ordering: .relaxed) }
        }
        ended.signal()
    }
}
