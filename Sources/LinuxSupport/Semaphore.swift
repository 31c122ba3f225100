internal import CLinux
import Glibc

/// A counting semaphore whose timed wait follows the monotonic clock.
///
/// `@unchecked Sendable`: a sem_t is made for being used by several threads, its address never changes, and it is
/// destroyed only when nobody refers to this object any more.
package final class Semaphore: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>

    package init() {
        semaphore = .allocate(capacity: 1)
        // Fails only for a value over SEM_VALUE_MAX or between processes (sem_init(3)): neither is asked for.
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Lets one wait go on.
    ///
    /// Never blocks.
    package func post() {
        sem_post(semaphore)
    }

    /// Waits for a post until `deadline` (monotonic nanoseconds; `.max` for without end).
    ///
    /// - Returns: Whether there was one. Without one it may return early.
    @discardableResult
    package func wait(until deadline: UInt64 = .max) -> Bool {
        clinux_semaphore_wait_until(semaphore, deadline) == 0
    }
}
