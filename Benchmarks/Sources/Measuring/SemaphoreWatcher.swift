package import CoreFoundation
import Dispatch
import Foundation
import Synchronization

/// The watchdog in most articles: each activity signals a semaphore, and a thread waits for it with a timeout of 50 ms.
package final class SemaphoreWatcher: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let activity = Atomic<UInt>(0)
    private let stalls = Atomic<Int>(0)
    private let isStopping = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    private let thread = Atomic<Int32>(0)

    package init() {
        Thread.detachNewThread { self.watch() }
    }

    /// The kernel's id of the thread; `nil` until it runs.
    package var threadID: Int32? {
        let known = thread.load(ordering: .relaxed)
        return known == 0 ? nil : known
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
        // The link is to PID/task/TID (proc(5)).
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        thread.store(own?.split(separator: "/").last.flatMap { Int32($0) } ?? 0, ordering: .relaxed)
        let working = [CFRunLoopActivity.beforeSources, .afterWaiting].map { UInt($0.rawValue) }
        while !isStopping.load(ordering: .relaxed) {
            guard semaphore.wait(timeout: .now() + .milliseconds(50)) == .timedOut else { continue }
            if working.contains(activity.load(ordering: .relaxed)) { stalls.add(1, ordering: .relaxed) }
        }
        ended.signal()
    }
}
