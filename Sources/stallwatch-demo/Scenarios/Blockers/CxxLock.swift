import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// C++'s mutex.
///
/// `@unchecked Sendable`: for the same reasons as ``PthreadLock``.
final class CxxLock: ThreadLock, @unchecked Sendable {
    private let mutex = demo_cxx_make()

    deinit { demo_cxx_free(mutex) }

    func acquire() { demo_cxx_lock(mutex) }

    func release() { demo_cxx_unlock(mutex) }
}
