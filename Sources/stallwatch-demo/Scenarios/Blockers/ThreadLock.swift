import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

// Locks of every kind, held by named threads for some time.
//
// A function that takes a lock makes the blocking call itself, reads its result, and is not inlined. So it is the innermost
// function of the app in a stack, whatever the optimizer does.

/// A lock that any thread can take and release.
protocol ThreadLock: Sendable {
    func acquire()
    func release()
}

extension ThreadLock {
    /// Makes a thread named `name` hold the lock for `duration`, and returns once it does.
    func hold(by name: String, _ holding: Holding, for duration: Duration) {
        NamedThread.start(name) { ready in
            acquire()
            ready()
            holding.run(for: duration)
            release()
        }
    }
}
