internal import CLinux
import Glibc

/// A thread of the monitor's own: a plain pthread, because Dispatch and Swift concurrency may be what is stuck.
///
/// `@unchecked Sendable`: the handle is written once, before anybody else has the object.
package final class WorkerThread: @unchecked Sendable {
    private var handle = pthread_t()

    /// Starts a thread with the name `name` (15 bytes) that runs `body` and ends.
    ///
    /// No signal of the app is delivered to it.
    package init(name: String, body: @escaping @Sendable () -> Void) throws(SystemError) {
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        let status = pthread_create(
            &handle, nil,
            { argument in
                // Never nil: it is the pointer given below, which carries one reference.
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                _ = clinux_block_all_signals()
                clinux_name_this_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque()
        )
        guard status == 0 else {
            start.release()
            throw SystemError("the thread \(name) cannot be started", errno: status)
        }
    }

    /// Whether the calling thread is this one.
    package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Waits for the thread's end.
    ///
    /// To be called exactly once, by another thread.
    package func join() {
        pthread_join(handle, nil)
    }

    /// Lets the thread end by itself.
    ///
    /// To be called exactly once, instead of ``join()``.
    package func detach() {
        pthread_detach(handle)
    }

    /// What the new thread needs, handed over in one pointer.
    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
