internal import CLinux
import Glibc

/// A counting semaphore whose timed wait uses the monotonic clock.
///
/// `@unchecked Sendable`: several threads may use a sem_t at once, its address never changes, and it is destroyed with
/// the last reference to this object.
package final class Semaphore: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>

    package init() {
        semaphore = .allocate(capacity: 1)
        // Fails only for a value over SEM_VALUE_MAX or for sharing between processes (sem_init(3)); neither applies.
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Releases one wait.
    ///
    /// Never blocks.
    package func post() {
        sem_post(semaphore)
    }

    /// Waits for a post.
    ///
    /// - Parameter deadline: The end of the wait, in nanoseconds of the monotonic clock; `.max` for no end.
    /// - Returns: Whether there was a post. A signal does not end the wait.
    @discardableResult
    package func wait(until deadline: UInt64 = .max) -> Bool {
        clinux_semaphore_wait_until(semaphore, deadline) == 0
    }
}
