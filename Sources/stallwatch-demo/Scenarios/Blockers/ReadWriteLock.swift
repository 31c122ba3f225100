import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// A read-write lock.
///
/// As a ``ThreadLock`` it is taken for writing.
///
/// `@unchecked Sendable`: for the same reasons as ``PthreadLock``.
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
        // Differs from the mutex's code on purpose: otherwise the optimizer would merge the two functions under one name.
        errno = error
        precondition(error == 0, "pthread_rwlock_wrlock fails only for a lock that is used wrongly")
    }

    @inline(never)
    func acquireForReading() {
        // EAGAIN: the lock cannot count another reader.
        while pthread_rwlock_rdlock(lock) == EAGAIN { sched_yield() }
    }

    func release() { pthread_rwlock_unlock(lock) }
}
