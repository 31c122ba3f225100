import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// One of Foundation's locks.
struct FoundationLock: ThreadLock {
    let lock: any NSLocking & Sendable

    @inline(never)
    func acquire() {
        lock.lock()
        errno = 0
    }

    func release() { lock.unlock() }
}
