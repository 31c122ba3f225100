import Glibc
import Synchronization

/// What happens when the tool is told to end: Ctrl-C, `kill`, a terminal that is closed.
///
/// A thread of its own waits for these signals (sigwait(3)), so that what has to be done is ordinary code: temporary files
/// go, and then the process ends by the very signal, which is what a shell wants to see. A command may instead be told.
enum Interruption {
    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    private struct State {
        var temporaryFiles: Set<String> = []
        var handler: (@Sendable () -> Void)?
    }
    private static let state = Mutex(State())

    /// Starts the thread.
    ///
    /// Has to come before any other thread, because these take over which signals are blocked.
    static func prepare() {
        var set = handledSignals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
        var thread = pthread_t()
        let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { _ in
            Interruption.waitForSignals()
            return nil
        }
        guard pthread_create(&thread, nil, body, nil) == 0 else {
            // Without the thread the signals do what they always do.
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            return
        }
        pthread_detach(thread)
    }

    private static func handledSignals() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals {
            // What a shell has the program ignore (nohup(1), a background job without job control) stays ignored.
            var action = sigaction()
            guard sigaction(signal, nil, &action) == 0, !isIgnored(action) else { continue }
            sigaddset(&set, signal)
        }
        return set
    }

    /// Has a temporary file removed if the process is told to end.
    static func remember(_ path: String) { state.withLock { _ = $0.temporaryFiles.insert(path) } }

    /// The file is gone, or no longer temporary.
    static func forget(_ path: String) { state.withLock { _ = $0.temporaryFiles.remove(path) } }

    /// Has `handler` called, on another thread, instead of ending the process: once, the next signal ends it.
    static func handle(with handler: @escaping @Sendable () -> Void) { state.withLock { $0.handler = handler } }

    private static func isIgnored(_ action: sigaction) -> Bool {
        // SIG_IGN is the address 1 (bits/signum-generic.h), and no function is there.
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    private static func waitForSignals() {
        var set = handledSignals()
        while true {
            var signal: Int32 = 0
            guard sigwait(&set, &signal) == 0 else { return }
            let handler = state.withLock { state in
                defer { state.handler = nil }
                return state.handler
            }
            if let handler {
                handler()
            } else {
                end(by: signal)
            }
        }
    }

    private static func end(by number: Int32) {
        state.withLock { state in
            for path in state.temporaryFiles { unlink(path) }
            signal(number, SIG_DFL)
            var set = sigset_t()
            sigemptyset(&set)
            sigaddset(&set, number)
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            // To this thread, which takes it at once, with the lock held: no new temporary file appears.
            raise(number)
        }
    }
}
