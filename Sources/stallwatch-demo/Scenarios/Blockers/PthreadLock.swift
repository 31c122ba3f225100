import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// A pthread mutex of any kind.
///
/// `@unchecked Sendable`: several threads may use a pthread_mutex_t, and its address never changes.
final class PthreadLock: ThreadLock, @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    init(type: Int32 = Int32(PTHREAD_MUTEX_NORMAL), robust: Bool = false, inheriting: Bool = false) {
        mutex = .allocate(capacity: 1)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, type)
        if robust { pthread_mutexattr_setrobust(&attributes, Int32(PTHREAD_MUTEX_ROBUST)) }
        if inheriting { pthread_mutexattr_setprotocol(&attributes, Int32(PTHREAD_PRIO_INHERIT)) }
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @inline(never)
    func acquire() {
        let error = pthread_mutex_lock(mutex)
        precondition(error == 0, "pthread_mutex_lock fails only for a mutex that is used wrongly")
    }

    func release() { pthread_mutex_unlock(mutex) }

    /// Waits for `duration` at most.
    ///
    /// - Returns: Whether the calling thread has the lock.
    @inline(never)
    func acquire(within duration: Duration) -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        let nanoseconds = deadline.tv_nsec + Int(duration.milliseconds * 1_000_000)
        deadline.tv_sec += nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        return pthread_mutex_timedlock(mutex, &deadline) == 0
    }
}
