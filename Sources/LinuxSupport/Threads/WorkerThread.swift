internal import CLinux
import Glibc

/// A thread of the monitor: a plain pthread, because Dispatch or Swift concurrency may be stalled.
///
/// `@unchecked Sendable`: `init` writes the handle once, before any other thread has the object.
package final class WorkerThread: @unchecked Sendable {
    private var handle = pthread_t()

    /// Starts a thread that runs `body` and ends.
    ///
    /// The thread blocks the signals that apps use, so that it runs none of their handlers. The signals of crashes, traps
    /// and profilers stay as the creating thread has them, so that a crash handler can stop this thread.
    ///
    /// - Parameters:
    ///   - name: The thread's name, at most 15 bytes.
    ///   - body: The code that the thread runs.
    /// - Throws: ``SystemError`` if the system refuses the thread.
    package init(name: String, body: @escaping @Sendable () -> Void) throws(SystemError) {
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        let status = pthread_create(
            &handle, nil,
            { argument in
                // Never nil: it is the pointer passed below, which carries one reference.
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                _ = clinux_block_app_signals()
                clinux_name_this_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque()
        )
        guard status == 0 else {
            start.release()
            throw SystemError(
                "the thread \(name) cannot be started: raise the limit on threads (ulimit -u, the cgroup's pids.max)",
                errno: status
            )
        }
    }

    /// Whether the calling thread is this one.
    package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Waits for the end of the thread.
    ///
    /// Call it exactly once, from another thread.
    package func join() {
        pthread_join(handle, nil)
    }

    /// Lets the thread end on its own.
    ///
    /// Call it exactly once, instead of ``join()``.
    package func detach() {
        pthread_detach(handle)
    }

    /// The arguments of the new thread, passed in one pointer.
    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
