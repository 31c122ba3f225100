import Foundation
import Glibc
import Synchronization

/// Turns the signals that ask a program to end into a wish to end well.
///
/// They are blocked everywhere but in one thread that waits for them, so that none interrupts a call of another thread's.
final class Interruption: Sendable {
    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    private let received = Atomic<Int32>(0)

    /// From now on the signals are only counted.
    ///
    /// To be called on the main thread before it has started others, which inherit its mask.
    init() {
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
        Thread.detachNewThread { [self] in
            NamedThread.nameThisThread("interruption")
            while true {
                var set = Self.set
                var signal: Int32 = 0
                guard sigwait(&set, &signal) == 0 else { continue }
                // Who asks twice does not want to wait. The shell's own status for a program that a signal has ended.
                if received.exchange(signal, ordering: .relaxed) != 0 { _exit(128 + signal) }
            }
        }
    }

    /// Whether one has come.
    var hasCome: Bool { received.load(ordering: .relaxed) != 0 }

    /// Lets the calling thread take all other signals, as threads of a program do that does not start them from a worker of
    /// libdispatch's, which blocks nearly all.
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
