import Glibc
import LinuxSupport
import Synchronization

/// A thread that waits for signals which end the tool (sigwait(3)), so that the handling is ordinary code: it removes
/// temporary files, and ends the process with the same signal, as shells expect.
enum Interruption {
    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    private struct Registrations {
        var temporaryFiles: Set<String> = []
        var handler: (@Sendable () -> Void)?
        var receiver: pid_t?
    }
    private static let state = Mutex(Registrations())

    /// Starts the thread, before any other does: threads inherit the blocked signals.
    static func prepare() {
        var set = handledSignals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
        do throws(SystemError) {
            try WorkerThread(name: "stallwatch-sig") { waitForSignals() }.detach()
        } catch {
            // Without the thread, the signals keep their default effect.
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
        }
    }

    private static func handledSignals() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals {
            // A signal that the shell has set to ignored (nohup(1), a background job) stays ignored.
            var action = sigaction()
            guard sigaction(signal, nil, &action) == 0 else { continue }
            // SIG_IGN is the address 1 (bits/signum-generic.h), which is not a function's.
            let isIgnored = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
            if !isIgnored { sigaddset(&set, signal) }
        }
        return set
    }

    /// Registers a temporary file, which is removed if a signal ends the process.
    static func remember(_ path: String) { state.withLock { _ = $0.temporaryFiles.insert(path) } }

    static func forget(_ path: String) { state.withLock { _ = $0.temporaryFiles.remove(path) } }

    /// Calls `handler` on another thread at the next signal; the one after that ends the process.
    static func handle(with handler: @escaping @Sendable () -> Void) { state.withLock { $0.handler = handler } }

    /// Sends signals on to a process instead of ending, except those of the terminal, which it has received, too.
    static func forward(to process: pid_t?) { state.withLock { $0.receiver = process } }

    private static func waitForSignals() {
        var set = handledSignals()
        while true {
            var info = siginfo_t()
            let signal = sigwaitinfo(&set, &info)
            guard signal > 0 else {
                if errno == EINTR { continue }
                return
            }
            let (handler, receiver) = state.withLock { state in
                defer { state.handler = nil }
                return (state.handler, state.receiver)
            }
            if let receiver {
                // A positive code: the kernel sent it (sigaction(2)).
                if info.si_code <= 0 { kill(receiver, signal) }
            } else if let handler {
                handler()
            } else {
                end(by: signal)
            }
        }
    }

    private static func end(by number: Int32) {
        state.withLock { state in
            for path in state.temporaryFiles { unlink(pathBytes(path)) }
            signal(number, SIG_DFL)
            var set = sigset_t()
            sigemptyset(&set)
            sigaddset(&set, number)
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            // Delivered to this thread at once. The lock is held, so no temporary file appears before that.
            raise(number)
        }
    }
}

final class StopRequest: Sendable {
    private let flag = Mutex(false)
    private let semaphore = Semaphore()

    static func bySignal() -> StopRequest {
        let request = StopRequest()
        Interruption.handle { request.set() }
        return request
    }

    var isSet: Bool { flag.withLock { $0 } }

    func set() {
        flag.withLock { $0 = true }
        semaphore.post()
    }

    func wait(until deadline: UInt64) {
        guard !isSet else { return }
        semaphore.wait(until: deadline)
    }
}
