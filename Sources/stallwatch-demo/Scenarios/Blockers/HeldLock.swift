import Foundation
import Glibc

/// A pthread mutex that another thread holds.
///
/// `@unchecked Sendable`: several threads may use a pthread_mutex_t, its address never changes, and the owner keeps this object
/// alive until it has released the lock.
final class HeldLock: @unchecked Sendable {
    let mutex: UnsafeMutablePointer<pthread_mutex_t>

    private init() {
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// A lock that a thread holds for `duration` from now on.
    static func held(for duration: Duration) async -> HeldLock {
        let lock = HeldLock()
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                NamedThread.nameThisThread("lock-holder")
                pthread_mutex_lock(lock.mutex)
                continuation.resume()
                Thread.sleep(forTimeInterval: duration.seconds)
                pthread_mutex_unlock(lock.mutex)
            }
        }
        return lock
    }
}
