import Foundation
import Glibc

// What a stalled thread can wait for: each is taken away by a thread of its own after a while, so no wait is without end.

/// A pthread mutex that another thread holds.
///
/// `@unchecked Sendable`: a pthread_mutex_t is made for being used by several threads, its address never changes, and the
/// thread that holds it keeps this object alive until it has let it go.
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

    /// A lock that a thread holds from now on for `duration`.
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

/// A pipe that has nothing to read.
final class EmptyPipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    /// A pipe that a thread writes one byte to after `duration`.
    init(for duration: Duration) {
        var ends: [Int32] = [-1, -1]
        // If it fails (no file descriptors left), reading fails at once, and the scenario's verdict is that nothing stalled.
        pipe(&ends)
        readEnd = ends[0]
        writeEnd = ends[1]
        Thread.detachNewThread { [self] in
            Thread.current.name = "pipe-writer"
            Thread.sleep(forTimeInterval: duration.seconds)
            write(writeEnd, "!", 1)
        }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }
}
