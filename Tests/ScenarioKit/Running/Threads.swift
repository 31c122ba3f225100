import Dispatch
import Foundation
import Glibc
import LinuxSupport
import StackCapture
import Synchronization

/// A named thread that runs `body` and says when it is ready.
enum NamedThread {
    /// Starts the thread and waits until `body` has called its argument.
    static func start(_ name: String, _ body: @escaping @Sendable (_ ready: @Sendable () -> Void) -> Void) {
        let isReady = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            nameThisThread(name)
            body { isReady.signal() }
        }
        isReady.wait()
    }

    static func nameThisThread(_ name: String) {
        // Takes effect at once, unlike the name of a Foundation thread.
        guard let file = fopen("/proc/thread-self/comm", "w") else { return }
        fputs(name, file)
        fclose(file)
    }
}

enum MainThread {
    /// How long the thread has been ready to run without a CPU since it began, in milliseconds.
    static func runnableMilliseconds() -> Double {
        Double((try? ThreadProbe(thread: getpid(), files: .schedstat).read()?.runQueue) ?? 0) / 1_000_000
    }
}

/// Waits without using any loop.
func pause(_ duration: Duration) async {
    // Throws only if the task is cancelled, and nothing here cancels one.
    try? await Task.sleep(for: duration)
}

/// Counts the signals that ask a program to end, so that the soak can end in order; all threads block them except one
/// that waits for them, so that none interrupts another thread's call.
final class Interruption: Sendable {
    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    private let received = Atomic<Int32>(0)

    /// Blocks the signals and starts to count them; call it on the main thread before it starts others, because they
    /// inherit its mask.
    init() {
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
        Thread.detachNewThread { [self] in
            NamedThread.nameThisThread("interruption")
            while true {
                var set = Self.set
                var signal: Int32 = 0
                guard sigwait(&set, &signal) == 0 else { continue }
                // A second signal ends the program at once, with the status that a shell gives to a program that a signal ended.
                if received.exchange(signal, ordering: .relaxed) != 0 { _exit(128 + signal) }
            }
        }
    }

    var hasCome: Bool { received.load(ordering: .relaxed) != 0 }

    /// Unblocks all other signals in the calling thread.
    ///
    /// A thread that a worker of libdispatch starts inherits a mask that blocks nearly all signals. Other programs' threads do
    /// not.
    static func unblockOtherSignals() {
        var set = set
        pthread_sigmask(SIG_SETMASK, &set, nil)
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}
