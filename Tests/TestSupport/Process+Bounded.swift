package import Foundation
import Glibc

extension Process {
    /// The time limit for a program in a test, in seconds; no program needs nearly as long, even on a busy machine.
    package static let timeout: TimeInterval = 600

    /// Starts the program, and kills it if it still runs after `seconds`.
    ///
    /// So a test that waits for the program, or reads all of its output, fails instead of hanging.
    package func run(atMost seconds: TimeInterval = timeout) throws {
        let ended = DispatchSemaphore(value: 0)
        terminationHandler = { _ in ended.signal() }
        try run()
        Thread.detachNewThread { [self] in
            if ended.wait(timeout: .now() + seconds) == .timedOut { kill() }
        }
    }

    /// Kills the program, unless it has ended, without waiting for its end.
    ///
    /// Does not use SIGTERM: the program inherits the signal mask of a dispatch worker, which blocks SIGTERM.
    package func kill() {
        if isRunning { _ = Glibc.kill(processIdentifier, SIGKILL) }
    }
}
