import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// A read-write lock; as a ``ThreadLock``, taken for writing.
///
/// `@unchecked Sendable`: as `PthreadLock`.
final class ReadWriteLock: ThreadLock, @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_rwlock_t>

    init() {
        lock = .allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
    }

    deinit {
        pthread_rwlock_destroy(lock)
        lock.deallocate()
    }

    @inline(never)
    func acquire() {
        let error = pthread_rwlock_wrlock(lock)
        // This makes the code unlike that of the mutex: the optimizer would share it, under the name of one of them.
        errno = error
        precondition(error == 0, "pthread_rwlock_wrlock fails only for a lock that is used wrongly")
    }

    @inline(never)
    func acquireForReading() {
        // EAGAIN: there are as many readers as the lock can count.
        while pthread_rwlock_rdlock(lock) == EAGAIN { sched_yield() }
    }

    func release() { pthread_rwlock_unlock(lock) }
}
