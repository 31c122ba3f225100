import Glibc

/// Two locks that two threads take in opposite order.
public final class Accounts: @unchecked Sendable {
    // Sendable: the mutexes are allocated once, and pthread_mutex functions may be called on any thread.
    private let first = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let second = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    /// Creates the locks.
    public init() {
        pthread_mutex_init(first, nil)
        pthread_mutex_init(second, nil)
    }

    /// Takes the first lock, then the second.
    public func transfer(then: () -> Void) {
        pthread_mutex_lock(first)
        then()
        var end = Self.deadline(milliseconds: 500)
        let status = pthread_mutex_timedlock(second, &end)  // stalls: deadlock
        if status == 0 { pthread_mutex_unlock(second) }
        pthread_mutex_unlock(first)
    }

    /// Takes the second lock, then the first.
    public func transferBack(then: () -> Void) {
        pthread_mutex_lock(second)
        then()
        pthread_mutex_lock(first)
        pthread_mutex_unlock(first)
        pthread_mutex_unlock(second)
    }

    private static func deadline(milliseconds: Int) -> timespec {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        time.tv_nsec += milliseconds * 1_000_000
        time.tv_sec += time.tv_nsec / 1_000_000_000
        time.tv_nsec %= 1_000_000_000
        return time
    }
}
