import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// Swift's own mutex.
final class SwiftLock: ThreadLock {
    private let mutex = Mutex(())

    @inline(never)
    func acquire() {
        mutex._unsafeLock()
        errno = 0
    }

    func release() { mutex._unsafeUnlock() }
}
